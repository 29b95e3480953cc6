/* SPDX-License-Identifier: MIT */
/*
 * Sources that are the kernel's ring buffers: one for each CPU of a tracefs instance
 * (source/once.h). Each read returns a sub-buffer of a ring: the page.
 *
 * A look reads whole sub-buffers, and ends with one that is not full: to read on would mostly bring
 * events that the reading causes. A flush reads until the kernel has no earlier record.
 */
#ifndef CONSUMERD_SOURCE_FTRACE_H
#define CONSUMERD_SOURCE_FTRACE_H

#include "consumerd/source/source.h"
#include "kernel/seen.h"
#include "proto/consumer.h"

/*
 * Makes the sources of a set. memory_fd: struct ky_kernel_cpu for each CPU; -1: private memory, for
 * a snapshot, of what the rings hold when they are opened. Descriptors stay the caller's. Returns 0
 * or -errno; -EBADMSG if the description is invalid.
 */
int ftrace_new(const struct ky_cons_kernel_set *m, int memory_fd, struct source_set **ret_set);
/*
 * Describes a kind of event, or replaces its filters. Returns 0 or -errno; -EBADMSG if the
 * description is invalid. *ret_new: it was not known.
 */
int ftrace_add_event(struct source_set *set, const struct ky_cons_kernel_event *m, bool *ret_new);
int ftrace_describe_tasks(struct source_set *set, const struct ky_cons_kernel_tasks *m);
int ftrace_add_threads(struct source_set *set, const struct ky_cons_kernel_threads *m);
/* Notes the addresses of the kernel's stacks from now on. Borrows it. */
void ftrace_note_stacks(struct source_set *set, struct ky_kseen *seen);
/*
 * Sets the files of a CPU, in the order of KERNEL_CPU, which are borrowed. For a snapshot, copies
 * its ring. Returns 0, or -errno.
 */
int ftrace_add_cpu(struct source_set *set, uint32_t cpu, const int fds[3]);
/*
 * Writes a part of a state dump. Returns 0, -EAGAIN if there is no room until the stream was
 * written, or -EBADMSG.
 */
int ftrace_dump(struct source_set *set, const struct ky_cons_kernel_dump *m);

#endif
