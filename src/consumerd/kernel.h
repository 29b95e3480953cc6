/* SPDX-License-Identifier: MIT */
/*
 * Requests about the kernel's events and CPU samples. A set becomes a stream set when the files of
 * its last CPU have come, after all events.
 */
#ifndef CONSUMERD_KERNEL_H
#define CONSUMERD_KERNEL_H

#include "consumerd/kernel-sets.h"

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

#endif
