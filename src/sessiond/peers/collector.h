/* SPDX-License-Identifier: MIT */
/*
 * The collector of system state, kymo-collectd: a child of the daemon, and for all else an
 * application. The daemon starts it when it serves applications. The collector is ready when two
 * things have happened, in any order: it has written a byte into a FIFO in the run directory (it
 * watches its sources), and it has registered. Until then, or until it is known to have failed,
 * clients that create sessions wait: so no session misses the state that it collects.
 *
 * Its standard input is a pipe from the daemon, with the ends of programs (abi/ended.h). The pipe
 * ends when the daemon does, even by SIGKILL. If the collector dies, the daemon starts it again,
 * after a longer delay each time.
 */
#ifndef SESSIOND_PEERS_COLLECTOR_H
#define SESSIOND_PEERS_COLLECTOR_H

#include "abi/ended.h"
#include "sessiond/peers/barrier.h"

#define COLLECTOR_ANSWER_NS (11000 * KY_NS_PER_MS) /* by then it is ready, or has failed */

struct env;

enum collector_state {
	COLLECTOR_NONE,	    /* not wanted, or not installed */
	COLLECTOR_STARTING, /* runs, and is not ready */
	COLLECTOR_READY,
	COLLECTOR_DEAD, /* to be started again */
};

struct collector {
	struct env *env;
	bool wanted;
	const char *without; /* what it leaves out, as it wants it; "": nothing */
	enum collector_state state;
	pid_t pid;	   /* 0: no process */
	int life_fd;	   /* the pipe's other end */
	uint32_t n_missed; /* messages that did not fit into it, in a row */
	int fifo_fd;
	struct ky_watch fifo_watch;
	bool has_written, has_registered;
	struct ky_timer timer;	/* STARTING: it has had its time. DEAD: to start it */
	struct ky_list tickets; /* of those who wait for it */
	uint64_t started_ns;
	unsigned n_failures; /* in a row */
	char trouble[160];   /* why it failed last; "": it has not */
};

void collector_init(struct collector *c, struct env *e);
/* Starts it if it is installed. Once. */
void collector_start(struct collector *c);
/* Ends it. */
void collector_deinit(struct collector *c);
/* Checks whether an exited child was the collector. */
void collector_reap(struct collector *c);
/* Returns whether the process with this number, which the kernel reported, is the collector. */
bool collector_is(const struct collector *c, pid_t pid);
/* Handles the registration of an application: it may be the collector. */
void collector_registered(struct collector *c, pid_t pid);
/* Sends it the end of a program, for its event. *ended: n_missed is filled in. */
void collector_report_end(struct collector *c, struct ky_ended *ended);
/* Makes b (not armed yet) wait for it if it is starting. */
void collector_await(struct collector *c, struct barrier *b);

#endif
