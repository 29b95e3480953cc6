/* SPDX-License-Identifier: MIT */
/*
 * Retires the ring sets of one process after it exited. The consumer writes what they hold,
 * releases their files and memory, and reports their counts to the daemon, which alone keeps them
 * from then on. Until the daemon confirms that it stored the counts, the consumer reports them
 * again to each of the daemon's successors.
 */
#ifndef CONSUMERD_RETIREMENT_H
#define CONSUMERD_RETIREMENT_H

#include "consumerd/state.h"

void retirement_init(struct consumerd *c);
void retirement_deinit(struct consumerd *c);
/* Retires the set: releases it as soon as all of it is written. Returns 0 or -errno. */
int retirement_begin(struct consumerd *c, uint32_t number);
/*
 * Releases retiring sets that are written. Called after each round of draining. Returns true if
 * there were any, and their counts were sent.
 */
bool retirement_proceed(struct consumerd *c);
/* Forgets the set's counts, because the daemon stored them. */
void retirement_forget(struct consumerd *c, uint32_t number);
/* Reports to a successor all counts that its predecessor has not confirmed. */
void retirement_repeat(struct consumerd *c);

#endif
