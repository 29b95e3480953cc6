/* SPDX-License-Identifier: MIT */
/*
 * CPU samples of one process and its children, for `kymo record --sample`. The daemon of one
 * command opens the perf events, with its user's own rights, and maps their buffers, so that these
 * outlive a consumer. A daemon that serves others does not: it would do it with its own rights.
 */
#ifndef SESSIOND_KERNEL_SAMPLES_H
#define SESSIOND_KERNEL_SAMPLES_H

#include "sessiond/model/registry.h"

#define SAMPLES_WHY_MAX 256
#define SAMPLES_NAME	"samples" /* of the streams */

struct samples {
	struct session *session;
	uint32_t number; /* as a kernel set's */
	uint32_t stream_id;
	struct registry *registry;
	uint32_t frequency; /* Hz */
	bool hardware, kernel, has_build_ids, counts_lost;
	int memory_fd;	       /* memory that outlives consumers (abi/kernel.h) */
	uint64_t ns, clock_at; /* perf's clock and the session's; 0: they are the same */
	uint32_t n_cpus;
	int *fds;    /* owned: perf events; -1: none, as the CPU is offline */
	void **maps; /* owned: their buffers */
};

/*
 * Prepares samples of the session, before the process is known: tries what the kernel allows.
 * Returns 0, or -errno with one line in why.
 */
int samples_make(struct session *s, uint32_t frequency, char why[SAMPLES_WHY_MAX]);
/* Samples the process from its next exec on. Returns 0, or -errno with one line in why. */
int samples_begin(struct samples *s, pid_t pid, char why[SAMPLES_WHY_MAX]);
void samples_stop(struct samples *s);
struct samples *samples_free(struct samples *s); /* NULL */

#endif
