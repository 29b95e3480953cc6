/* SPDX-License-Identifier: MIT */
/*
 * Kernel events: the daemon's access to tracefs, and the kernel channels of sessions.
 *
 *   channel (DOMAIN_KERNEL) --- kernel set: two instances (instance.h), the memory of consumers
 *                                  \--- kernel event (events.h): described, enabled, filtered
 *
 * The parts above send the sets to consumers; they observe what is made here (model/observer.h).
 */
#ifndef SESSIOND_KERNEL_KERNEL_H
#define SESSIOND_KERNEL_KERNEL_H

#include "kernel/marker.h"
#include "proto/consumer.h"
#include "sessiond/kernel/set.h"

void kernel_init(struct kernel *k, struct env *e);
/* Removes what dead daemons have left in tracefs, if we are root. */
void kernel_begin(struct kernel *k);
void kernel_deinit(struct kernel *k);

/*
 * Makes the channel's set, if it has none yet. Returns 0, or -errno with one line in why; the
 * channel is as it was then.
 */
int kernel_set_make(struct channel *c, char why[KERNEL_WHY_MAX]);
/* Finds the kernel set of this number in the session, or NULL. */
struct kernel_set *kernel_set_find(const struct session *s, uint32_t number);
/* A set that a predecessor made, from its journal. Returns NULL if allocation fails. */
struct kernel_set *kernel_set_restore(struct channel *c, uint32_t number, const char *instance);
/*
 * Takes the descriptors over that the predecessor's consumer has kept: memory, metadata log,
 * free_buffer, directory. Returns 0 or -errno.
 */
int kernel_set_adopt(struct kernel_set *set, int fds[4]);
/* The same for the files of a CPU: trace_pipe_raw, stats, trace_pipe_raw of the other instance. */
int kernel_set_adopt_cpu(struct kernel_set *set, uint32_t cpu, int fds[3]);

/* For these: opens what the daemon can open itself. */
int kernel_set_follow(struct kernel_set *set);
/* Forgets the channel's set, and removes its instances. */
void kernel_set_drop(struct channel *c);
/* All descriptors of the session have come: drops the sets without any. */
void kernel_settle(struct session *s);

/* Makes a new channel one for kernel events, whose records have their thread. 0 or -ENOMEM. */
int kernel_channel_init(struct channel *c);
bool session_has_kernel(const struct session *s);
/* Before the session starts: makes sure that the kernel has its events as they are described. */
void kernel_prepare(struct session *s);
/*
 * Applies the session's state to its kernel channels: started or not, whom it tracks. Failures
 * become notices.
 */
void kernel_apply(struct session *s);
void kernel_stop(struct session *s);
/*
 * Looks whether the kernel still records the session's events, with its clock: at the end of each
 * chunk, and at a snapshot. If another program has changed that, it becomes a notice, and is set
 * again. A marker makes the consumer compare the clocks themselves.
 */
void kernel_check_instances(struct session *s);
/* A consumer has found a marker of the set: clocks that differ become a notice. */
void kernel_marker_found(struct session *s, uint32_t number, const struct ky_kmarker *m);
/* Records the state of the system again, where the session records now. */
void kernel_dump_state(struct session *s);
/* Removes all kernel sets of the session, whose consumer has ended. */
void kernel_end(struct session *s);
/* Applies a change of the channel: enabled, disabled. */
void kernel_channel_apply(struct channel *c);

#endif
