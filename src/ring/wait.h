/* SPDX-License-Identifier: MIT */
/*
 * An event's wait for room, in programs that allow it. Used by the slow ways of recording (record.c), in any thread and
 * signal handler: no lock, errno kept, no memory but the caller's.
 *
 * Nobody wakes those who wait, because consumers make no call for each block that they have read: a writer sleeps, twice
 * as long each time, and tries again. Its longest sleep is so short that the listener, which waits for writers to leave
 * a set, does not give up before.
 */
#ifndef RING_WAIT_H
#define RING_WAIT_H

#include "base/util.h"

/* Zeroed for each event. */
struct ky_wait {
	uint64_t begin_ns, nap_ns;
	pid_t pid;
};

enum ky_waited {
	/* the time is over, or there was none */
	KY_WAIT_OVER = 0,
	/* have another try */
	KY_WAIT_AGAIN = 1,
	/* a signal handler has forked, and this is the child: nothing is as it was */
	KY_WAIT_FORKED = 2,
};

/* May the calling thread wait for timeout_ns (0: not at all; UINT64_MAX: for ever)? */
bool ky_wait_allowed(uint64_t timeout_ns);
/* Sleeps for a moment, unless timeout_ns have passed since the first time. */
enum ky_waited ky_wait_nap(struct ky_wait *w, uint64_t timeout_ns);
/*
 * From now on the calling thread may not wait, because others wait for it: it has the tracer's lock, or is the listener;
 * and the end of that, as often.
 */
void ky_wait_forbid(void);
void ky_wait_allow(void);

#endif
