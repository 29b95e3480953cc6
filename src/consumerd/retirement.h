/* SPDX-License-Identifier: MIT */
/*
 * The end of ring sets that belong to one process, when that is gone: what they hold is written, their files and memory go,
 * and the daemon is told their counts, which only it keeps then. Until it says that it has written them down, they are told
 * again to each of its successors.
 */
#ifndef CONSUMERD_RETIREMENT_H
#define CONSUMERD_RETIREMENT_H

#include "consumerd/consumer.h"

void retirement_init(struct consumer *c);
void retirement_deinit(struct consumer *c);
/* The set goes as soon as all of it is written. 0 or -errno. */
int retirement_begin(struct consumer *c, uint32_t number);
/* After a round of draining: those that are written. True when there were any, and their counts have gone. */
bool retirement_proceed(struct consumer *c);
/* The daemon has written it down. */
void retirement_forget(struct consumer *c, uint32_t number);
/* Tells a successor what the daemon may not have heard. */
void retirement_repeat(struct consumer *c);

#endif
