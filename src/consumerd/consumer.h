/* SPDX-License-Identifier: MIT */
/*
 * The consumer of one session: takes orders from the session daemon (docs/protocol.md, "Consumer"),
 * drains the session's ring sets by a timer, and tells counts and errors. One thread, one loop.
 *
 * Writers make no system call, so nothing wakes us but a timer: eight times while the fastest writers fill
 * a ring, at least every four milliseconds, or as often as the ring set's read-timer says; and not at all
 * before the first ring set.
 *
 * A chunk is what is written between two ROTATEs. Its end has one point of no return, the renaming of its directory: before,
 * a slot for the next chunk was made for each stream (abi/resume.h); after, the session's memory gets the chunk's number. Who goes on
 * after a crash between the two sees that slots are ready and the directory is gone.
 *
 * A consumer that is told SNAPSHOT copies the rings instead, as each ring set comes, and writes the
 * copies out when it is to end: nobody but the daemon notices it.
 */
#ifndef CONSUMERD_CONSUMER_H
#define CONSUMERD_CONSUMER_H

#include "abi/resume.h"
#include "proto/consumer.h"
#include "svc/msg-conn.h"

#define CONSUMER_MESSAGE_MAX 1024

struct consumer {
	struct ky_loop loop;
	struct ky_msg_conn conn; /* to the daemon, unless it is gone */
	bool connected;
	struct ky_timer timer;
	char *output; /* the trace directory, "" for none; NULL before INIT */
	int root_fd;  /* of the trace directory; -1 when there is none */
	bool resume;
	struct ky_resume_session
		*session; /* mapping, from INIT on; the present chunk is `session->chunk` */
	int session_fd;	  /* of that memory; -1: none */
	bool snapshot;
	uint64_t snapshot_max; /* bytes of its packets; 0: no limit */
	/* of a recovery (recovery.h) */
	bool recovers; /* nobody else will write what is in buffers in overwrite mode */
	int source_fd; /* directory of the buffers, where positions are kept and all is removed; borrowed; -1 */
	struct ky_list traces, sets;
	/* the failure that stands, as it was told to the daemon */
	int status;
	char message[CONSUMER_MESSAGE_MAX];
	bool quitting;
	int exit_status;
	/* for a successor of the daemon (succession.h) */
	char rendezvous[108]; /* a socket's path; "": there is none to come */
	struct ky_list kept, kept_logs;
	struct ky_list retired; /* sets that are gone (retirement.h) */
	struct ky_timer caller;
};

/* 0 or -errno; deinit is due in either case. */
int consumer_init(struct consumer *c);
/* Serves the daemon until it is told to quit. Returns the process's exit status. */
int consumer_run(struct consumer *c);
void consumer_deinit(struct consumer *c);

/* A daemon at the other end of the socket fd (non-blocking, close-on-exec), which is taken: 0 or -errno. */
int consumer_connect(struct consumer *c, int fd);
/* An order: 0, or -errno when it cannot be followed. Descriptors that it keeps become -1 in fds; the others stay the caller's. */
int consumer_follow(struct consumer *c, const void *buf, size_t len, int *fds, size_t n_fds);
/* Writes out what was published so far; c->status is what it is then. */
void consumer_write(struct consumer *c);
/* Writes out what there is, and ends. */
void consumer_end(struct consumer *c, const char *why);

#endif
