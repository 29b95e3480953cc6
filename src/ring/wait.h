/* SPDX-License-Identifier: MIT */
/*
 * An event's wait for room, in applications that allow it. The slow ways of recording (record.c)
 * use it in any thread and signal handler. It takes no lock, preserves errno, and uses only the
 * caller's memory.
 *
 * Nobody wakes a waiting writer, because a consumer makes no call for each block that it has read.
 * The writer sleeps, twice as long each time, and tries again. Its longest sleep is so short that
 * the listener, which waits for writers to leave a set, does not time out before it ends.
 */
#ifndef RING_WAIT_H
#define RING_WAIT_H

#include "base/util.h"

/* The state of one event's wait. The caller zeroes it for each event. */
struct ky_ring_wait {
	uint64_t begin_ns, nap_ns;
	pid_t pid;
};

enum ky_waited {
	/* the time is over, or there was none */
	KY_WAIT_OVER = 0,
	/* try again */
	KY_WAIT_AGAIN = 1,
	/* a signal handler has forked and this is the child: no state from before is valid */
	KY_WAIT_FORKED = 2,
};

/*
 * Returns true if the calling thread may wait for timeout_ns. 0: not at all; UINT64_MAX: without
 * limit.
 */
bool ky_wait_allowed(uint64_t timeout_ns);
/* Sleeps for a moment, unless timeout_ns have passed since the first call. */
enum ky_waited ky_wait_nap(struct ky_ring_wait *w, uint64_t timeout_ns);
/*
 * Forbids the calling thread to wait, because others wait for it: it holds the tracer's lock or is
 * the listener. ky_wait_allow ends this. Calls nest: each ky_wait_forbid needs one ky_wait_allow.
 */
void ky_wait_forbid(void);
void ky_wait_allow(void);

#endif
