/* SPDX-License-Identifier: MIT */
/*
 * Sets of kernel events: what the session daemon sends of a tracefs instance. The consumer gets
 * descriptors and no paths. It holds them for a successor of the daemon, and until the set is
 * retired: as long as one of two of them is open, the kernel goes on recording (free_buffer), and
 * no daemon takes the instance for abandoned (the locked directory).
 *
 * The set becomes a stream set when the files of its last CPU have come, after all events.
 *
 * CPU samples are a set too: its files are perf events.
 */
#ifndef CONSUMERD_KERNEL_H
#define CONSUMERD_KERNEL_H

#include "consumerd/state.h"

#define N_KERNEL_FDS  4
#define N_CPU_FDS     3
#define N_SAMPLES_FDS 2

/* Follow a request; as the functions in requests.c. They take what they keep out of fds. */
int kernel_on_set(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_cpu(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_event(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_samples_set(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_samples_cpu(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_tasks(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_threads(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_symbols(struct consumerd *c, struct ky_reader *r, int *fds);
int kernel_on_dump(struct consumerd *c, struct ky_reader *r, int *fds);
/* Closes the files of a set, if it is one of the kernel. */
void kernel_release(struct consumerd *c, uint32_t set);
/* Lets the kernel wake the consumer again, after a round. */
void kernel_watch(struct consumerd *c);
/* Sends all sets to a successor of the daemon. Adds their number. Returns 0 or -EPERM. */
int kernel_send_all(struct consumerd *c, uint32_t *n_sets);

void kernel_init(struct consumerd *c);
void kernel_deinit(struct consumerd *c);

#endif
