/* SPDX-License-Identifier: MIT */
/*
 * The consumer of one session. It follows the requests of the session daemon (docs/protocol.md,
 * "Consumer"), drains the session's ring sets by a timer, and reports counts and errors. It has one
 * thread and one event loop.
 *
 * Writers make no system call, so only a timer wakes the consumer. The timer expires eight times
 * while the fastest writers fill a ring, at least every four milliseconds, or as often as the ring
 * set's read-timer says. It does not run before the first ring set.
 *
 * A chunk is the part of the trace between two ROTATEs. Its end has one point of no return: the
 * consumer renames the chunk's directory. Before that, it makes a slot for the next chunk for each
 * stream (abi/resume.h). Afterwards, it stores the chunk's number in the session's memory. If the
 * consumer dies between the two, its successor sees that slots are ready and that the directory
 * does not exist.
 *
 * After a SNAPSHOT, a consumer copies the rings instead, as each ring set arrives, and writes the
 * copies when the daemon ends it. Only the daemon notices this.
 */
#ifndef CONSUMERD_CONSUMER_H
#define CONSUMERD_CONSUMER_H

#include "abi/resume.h"
#include "proto/consumer.h"
#include "svc/msg-conn.h"

#define CONSUMER_MESSAGE_MAX 1024

struct consumer {
	struct ky_loop loop;
	struct ky_msg_conn conn; /* to the daemon, while that lives */
	bool connected;
	struct ky_timer timer;
	char *output; /* the trace directory, "" for none; NULL before INIT */
	int root_fd;  /* of the trace directory; -1: none */
	struct sink *sink;
	bool resume;
	struct ky_resume_session
		*session; /* mapping, from INIT on; the present chunk is `session->chunk` */
	int session_fd;	  /* of that memory; -1: none */
	bool snapshot;
	uint64_t snapshot_max; /* bytes of its packets; 0: no limit */
	/* of a recovery (recovery.h) */
	bool recovers; /* nobody else writes the buffers in overwrite mode */
	/* directory of the buffers, of the positions, and of all that is removed; borrowed; -1 */
	int source_fd;
	struct ky_list traces, sets;
	/* the present failure, as it was reported to the daemon */
	int status;
	char message[CONSUMER_MESSAGE_MAX];
	bool quitting;
	int exit_status;
	/* for a successor of the daemon (succession.h) */
	char rendezvous[108]; /* a socket's path; "": there will be no successor */
	struct ky_list kept, kept_logs;
	struct ky_list retired; /* sets whose process exited (retirement.h) */
	struct ky_timer caller;
};

/* Initializes the consumer. Returns 0 or -errno; consumer_deinit is due in either case. */
int consumer_init(struct consumer *c);
/* Serves the daemon until it requests the end. Returns the process's exit status. */
int consumer_run(struct consumer *c);
void consumer_deinit(struct consumer *c);

/*
 * Connects to a daemon by the socket fd (non-blocking, close-on-exec). Takes fd. Returns 0 or
 * -errno.
 */
int consumer_connect(struct consumer *c, int fd);
/* Reports damaged sets again, to a successor of the daemon. */
void consumer_repeat_damage(struct consumer *c);
/*
 * Follows one request. Returns 0, or -errno if it cannot. Sets the descriptors that it keeps to -1
 * in fds; the others stay the caller's.
 */
int consumer_follow(struct consumer *c, const void *buf, size_t len, int *fds, size_t n_fds);
/* Writes all records that were published so far, and updates c->status. */
void consumer_write(struct consumer *c);
/* Writes all records, and ends the consumer. */
void consumer_end(struct consumer *c, const char *why);

#endif
