/* SPDX-License-Identifier: MIT */
/*
 * The state of the system when a kernel channel begins to record: the processes, files, interrupts,
 * devices and CPUs that its events are about. Events of these names are in the traces of LTTng, and
 * analyses read them.
 */
#ifndef SESSIOND_KERNEL_STATEDUMP_H
#define SESSIOND_KERNEL_STATEDUMP_H

#include "base/buf.h"
#include "sessiond/kernel/set.h"

/* Their identifiers in the stream. */
#define STATEDUMP_ID	 32u
#define STATEDUMP_EVENTS 32u /* at most */

/* Appends the descriptions of these events. */
void statedump_describe(struct ky_buf *text, uint32_t stream_id);
/*
 * Calls send for lists of the threads that exist: struct ky_kernel_thread each. The consumer
 * follows them from then on.
 */
void statedump_threads(const struct kernel_set *set,
	void (*send)(void *arg, const struct kernel_set *set, const struct ky_bytes *threads),
	void *arg);
/* Begins a dump: the consumer holds back what is recorded from now on. clock: 0: the stream's. */
void statedump_begin(struct kernel_set *set, uint64_t clock);
/* Gathers the state, and sends it. */
void statedump_send(const struct kernel_set *set);

#endif
