/* SPDX-License-Identifier: MIT */
/*
 * The sockets of `kymo live`: one thread, one request of each viewer at a time. A viewer that does
 * not read its reply gets no other one, and nobody waits for it.
 */
#ifndef LIVE_SERVER_H
#define LIVE_SERVER_H

#include <signal.h>

#include "live/viewer.h"

struct live_server {
	struct live *live; /* borrowed */
	int listener;	   /* borrowed */
	/* Called with one line for the user: why a viewer was disconnected, or what it lacks. */
	void (*report)(struct live_server *s, const char *text);
	void *context;
	/* Of one period, so that connections without end do not fill the user's screen or disk. */
	uint64_t sent_away_ns; /* the period's begin; 0: none yet */
	unsigned n_sent_away;
};

/* Serves until *stop is set, by a signal that `mask` lets through. Returns 0 or -errno. */
int live_serve(struct live_server *s, const volatile sig_atomic_t *stop, const sigset_t *mask);

#endif
