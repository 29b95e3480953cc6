/* SPDX-License-Identifier: MIT */
/*
 * Counters of the kernel (perf) for each thread, as contexts. A thread opens a counter when it
 * first records an event that has it. The descriptor is in the thread's own table of descriptors,
 * at a high number. It is closed when the thread ends.
 */
#ifndef TRACER_COUNTER_H
#define TRACER_COUNTER_H

#include "proto/app.h"

#define COUNTERS_MAX 16u /* in one process */

/*
 * Returns the counter's number in this process, or COUNTERS_MAX if there are too many. Called under
 * the lock.
 */
uint32_t counter_number(const char *argument);
/* Notes whether this process may use the counter, before a thread tries it. */
void counter_probe(uint32_t number);
/*
 * Returns why a thread, or the probe, could not open it; false if all could. number: less than
 * COUNTERS_MAX. Called under the lock.
 */
bool counter_failure(uint32_t number, struct ky_app_uncounted *ret_failure);
/* Returns its value in this thread, or 0 if it cannot be read. Preserves errno. */
uint64_t counter_read(uint32_t number);
/* Called in a forked child: closes the parent's descriptors and drops their failures. */
void counter_reset(void);
void counter_release_thread(void);

#endif
