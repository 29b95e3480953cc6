/* SPDX-License-Identifier: MIT */
/*
 * Sets of kernel events: what the session daemon sends of a tracefs instance. The consumer gets
 * descriptors and no paths. It holds them for a successor of the daemon, and until the set is
 * retired: as long as one of two of them is open, the kernel goes on recording (free_buffer), and
 * no daemon takes the instance for abandoned (the locked directory).
 *
 * CPU samples are a set too: its files are perf events.
 */
#ifndef CONSUMERD_KERNEL_SETS_H
#define CONSUMERD_KERNEL_SETS_H

#include "consumerd/state.h"

struct source_set;
struct trace;

#define N_KERNEL_FDS  4
#define N_CPU_FDS     3
#define N_SAMPLES_FDS 2

/* Of a trace_pipe_raw: the channel's, and that of new threads. */
struct kernel_waker {
	struct ky_watch watch;
	struct kernel_set *set;
	bool asleep; /* the kernel has woken the consumer: not again before the next round */
};

struct kernel_cpu {
	struct kernel_waker events, tasks;
	int fds[N_CPU_FDS]; /* owned; as in KERNEL_CPU; -1: not sent yet */
};

struct kernel_set {
	struct ky_list node; /* in consumer->kernel_sets */
	struct consumerd *consumer;
	struct ky_cons_ring_set like; /* what stream sets know of it; strings are owned */
	int fds[N_KERNEL_FDS];	      /* owned; as in KERNEL_SET */
	struct trace *trace;
	/* owned until there is a stream set; NULL: the consumer does not read the rings */
	struct source_set *pending;
	struct source_set *sources;
	uint32_t n_cpus, n_known;
	bool has_samples; /* its files are perf events, one for each CPU */
	struct kernel_cpu *cpus;
};

/* Returns NULL if there is none with this number. */
struct kernel_set *kernel_set_find(const struct consumerd *c, uint32_t id);
/* Adds a set without files. Returns NULL if allocation fails. */
struct kernel_set *kernel_set_new(
	struct consumerd *c, const struct ky_cons_ring_set *like, uint32_t n_cpus);
/* Removes the set, and closes its files. Returns NULL. */
struct kernel_set *kernel_set_free(struct kernel_set *k);

/* Closes the files of a set, if it is one of the kernel. */
void kernel_sets_release(struct consumerd *c, uint32_t set);
/* Lets the kernel wake the consumer again, after a round. */
void kernel_sets_watch(struct consumerd *c);
/* Sends all sets to a successor of the daemon. Adds their number. Returns 0 or -EPERM. */
int kernel_sets_send_all(struct consumerd *c, uint32_t *n_sets);

void kernel_sets_init(struct consumerd *c);
void kernel_sets_deinit(struct consumerd *c);

#endif
