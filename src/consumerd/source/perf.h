/* SPDX-License-Identifier: MIT */
/*
 * Sources that are buffers of perf events: samples of what a CPU runs (kernel/perf-record.h), one
 * buffer for each CPU. They are like source/once.h has them: though perf's buffers can be read
 * again, their records and those of the trace have different sizes.
 *
 * The kernel stamps samples with one of its clocks. At each look the consumer reads that clock and
 * the session's, which runs evenly beside it; records between two readings are on the line through
 * both.
 */
#ifndef CONSUMERD_SOURCE_PERF_H
#define CONSUMERD_SOURCE_PERF_H

#include "consumerd/source/source.h"
#include "kernel/seen.h"
#include "proto/consumer.h"

/* Makes the sources of a set; as ftrace_new. memory_fd: struct ky_kernel_cpu for each CPU. */
int perf_new(const struct ky_cons_samples_set *m, int memory_fd, struct source_set **ret_set);
/* Notes the kernel's addresses from now on. Borrows it. */
void perf_note_stacks(struct source_set *set, struct ky_kseen *seen);
/* Sets the perf event of a CPU, which is borrowed, and maps its buffer. Returns 0 or -errno. */
int perf_add_cpu(struct source_set *set, uint32_t cpu, int fd);

#endif
