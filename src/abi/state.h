/* SPDX-License-Identifier: MIT */
/*
 * The names in a run directory, and the state page that a session daemon publishes there. From the
 * page an application learns, without a connection, whether a daemon is alive and a session active.
 *
 *   RUNDIR/app.sock      SOCK_SEQPACKET, applications (docs/protocol.md)
 *   RUNDIR/control.sock  SOCK_STREAM, clients, JSON lines
 *   RUNDIR/state         struct ky_state, read by pread (never mapped, so no SIGBUS)
 *   RUNDIR/wake          FIFO: applications that found no daemon poll its reading end; a daemon
 *                        that starts opens and closes the writing end, so all of them get
 *                        POLLHUP and connect
 *   RUNDIR/drain.sock    SOCK_SEQPACKET, consumers whose daemon was killed (proto/consumer.h)
 *   RUNDIR/sessions/     the journals that a daemon writes for its successor (docs/recovery.md)
 *   RUNDIR/managed       exists while a service manager runs the daemon, also between its death
 *                        and its restart: commands wait for it, and start none of their own
 *   RUNDIR/lock          flock of the living daemon, and its process number; kymo-sessiond exits
 *                        with KY_RUN_BUSY if another one holds it
 *
 * Applications that trace without a daemon of their user (KYMO_STANDALONE=DIR) find their
 * companion's run directory through the trace:
 *
 *   DIR/.kymo            symbolic link to the run directory; exists while the trace is written
 */
#ifndef ABI_STATE_H
#define ABI_STATE_H

#include <assert.h>
#include <stdint.h>
#include <sys/stat.h>

#define KY_RUN_APP	"app.sock"
#define KY_RUN_CONTROL	"control.sock"
#define KY_RUN_DRAIN	"drain.sock"
#define KY_RUN_SESSIONS "sessions"
#define KY_RUN_STATE	"state"
#define KY_RUN_WAKE	"wake"
#define KY_RUN_LOCK	"lock"
#define KY_RUN_MANAGED	"managed"
#define KY_RUN_LINK	".kymo"
#define KY_RUN_GLOBAL	"/run/kymo"

/*
 * The mode of the files there. The sticky bit says that they are in use, however old they look:
 * clean-ups of old files leave them alone (XDG Base Directory Specification, systemd-tmpfiles).
 */
#define KY_RUN_PUBLIC  (0644 | S_ISVTX)
#define KY_RUN_PRIVATE (0600 | S_ISVTX)

#define KY_RUN_BUSY 3

/* The file of libkymo has this text, with its version behind it ('kymo doctor'). */
#define KY_LIBRARY_MARK "libkymo version "

#define KY_STATE_MAGIC 0x54534b59u /* "YKST" */

struct ky_state {
	uint32_t magic;
	uint32_t size; /* of this structure */
	uint32_t pid;  /* of the daemon; 0 after it has ended normally */
	/* started sessions with a rule: an application that starts waits for them */
	uint32_t n_active;
	/* increases at most once in a millisecond, while the daemon is alive and busy */
	uint64_t progress;
};
static_assert(sizeof(struct ky_state) == 24, "state ABI");

#endif
