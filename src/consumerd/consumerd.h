/* SPDX-License-Identifier: MIT */
/*
 * The consumer of one session. It follows the requests of the session daemon (requests.h), drains
 * the session's ring sets in rounds (round.h), and reports counts and errors. It has one thread and
 * one event loop.
 */
#ifndef CONSUMERD_CONSUMERD_H
#define CONSUMERD_CONSUMERD_H

#include "consumerd/state.h"

/* Initializes the consumer. Returns 0 or -errno; consumerd_deinit is due in either case. */
int consumerd_init(struct consumerd *c);
/* Serves the daemon until it requests the end. Returns the process's exit status. */
int consumerd_run(struct consumerd *c);
void consumerd_deinit(struct consumerd *c);

#endif
