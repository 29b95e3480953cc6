/* SPDX-License-Identifier: MIT */
/*
 * The run directory: made, checked, locked, and the state page and the wake FIFO in it
 * (abi/state.h).
 */
#ifndef SESSIOND_PEERS_RUNDIR_H
#define SESSIOND_PEERS_RUNDIR_H

#include <sys/types.h>
#include <sys/un.h>

#include "abi/state.h"
#include "base/util.h"

#define RUNDIR_MAX sizeof(((struct sockaddr_un *)0)->sun_path)

struct rundir {
	char path[RUNDIR_MAX];
	bool global; /* root's: all users' programs may connect */
	int lock_fd, state_fd;
	int watch_fd; /* readable when something was removed or moved away; -1 */
	struct ky_state state;
};

/*
 * Opens the directory for this daemon alone. 0, or -errno after a line in the log that says what is
 * wrong: the place, its owner or mode, another daemon's pid. take_over: asks another daemon to make
 * room, and waits for it. is_made: the process that started the daemon made the directory, and
 * removes it: a directory that does not exist is not made again.
 */
int rundir_open(struct rundir *r, bool take_over, bool is_made);
/*
 * Returns the path of a file in the directory, in one static buffer. rundir_open made sure that it
 * fits an address.
 */
const char *rundir_path(const struct rundir *r, const char *name);
/* Publishes that a daemon is alive; later calls change n_active and count a turn. */
int rundir_publish(struct rundir *r, uint32_t n_active);
/* Notes whether a service manager runs the daemon, for commands that find none. Logs a failure. */
void rundir_set_managed(const struct rundir *r, bool managed);
/* Wakes programs that wait for a daemon. After the sockets listen. */
int rundir_wake(const struct rundir *r);
/*
 * Returns whether the path leads to fd. A directory that was removed or moved away while its daemon
 * ran may exist again and belong to another daemon: check before removing anything. If fd cannot be
 * checked, returns true, because a journal that stays behind would bring its session back.
 */
bool rundir_leads_to(const char *path, int fd);
/*
 * Returns whether the directory was removed or renamed. The lock file stands for it. Call it when
 * watch_fd is readable.
 */
bool rundir_is_lost(const struct rundir *r);
/* Makes the FIFO and the state page again if somebody has removed them. Logs a failure. */
void rundir_mend(struct rundir *r);
/* Marks the daemon as ended, removes the sockets. */
void rundir_close(struct rundir *r);

#endif
