/* SPDX-License-Identifier: MIT */
/*
 * Counters of the kernel (perf) for each thread, as contexts. A thread opens one when it first records an event that has
 * it, in its own table of descriptors, high up; it is closed when the thread ends.
 */
#ifndef TRACER_COUNTER_H
#define TRACER_COUNTER_H

#include "proto/app.h"

#define COUNTERS_MAX 16u /* of a process */

/* The number that stands for it in this process; COUNTERS_MAX when there are too many. Under the lock. */
uint32_t counter_number(const char *argument);
/* Notes whether this process may count it, before a thread tries. */
void counter_probe(uint32_t number);
/* Why a thread, or the probe, could not count it; false: all could. number: less than COUNTERS_MAX. Under the lock. */
bool counter_failure(uint32_t number, struct ky_app_uncounted *ret_failure);
/* How far it has come in this thread; 0 when it cannot be read. Keeps errno. */
uint64_t counter_read(uint32_t number);
/* In a forked child: the parent's are closed, and their failures forgotten. */
void counter_reset(void);
void counter_release_thread(void);

#endif
