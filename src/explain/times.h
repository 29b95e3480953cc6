/* SPDX-License-Identifier: MIT */
/* When affected instances come: the first, each n-th, periodically, in one stretch, ever later. */
#ifndef EXPLAIN_TIMES_H
#define EXPLAIN_TIMES_H

#include "explain/difference.h"

#define KY_MAX_TIMES 4

struct ky_times {
	struct ky_condition v[KY_MAX_TIMES]; /* the caller frees the texts */
	size_t n;
};

/* all: in order of their begins. 0 or -ENOMEM; then there is nothing to free. */
int ky_times_find(struct ky_times *ret, const struct ky_difference *d, const struct ky_finding *f,
	struct ky_instance *const *all, size_t n_all);

/* "10:38:15.633286720", local time. Returns buf. */
const char *ky_times_clock(char *buf, size_t size, int64_t ns);

#endif
