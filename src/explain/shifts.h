/* SPDX-License-Identifier: MIT */
/*
 * The tests of conditions take instances to be independent of each other. Often they are not: slow
 * ones come in bursts, and a value comes in runs, as that of a tenant whose requests follow each
 * other. A burst that meets a run is one coincidence, not one for each instance. So the property is
 * moved along the threads, by each number of instances: what is no coincidence is not met again.
 * This is only done if there are few runs. Many runs are many coincidences; and patterns that come
 * again and again, as each 64th instance does, meet themselves.
 */
#ifndef EXPLAIN_SHIFTS_H
#define EXPLAIN_SHIFTS_H

#include "explain/model.h"

typedef bool ky_shifts_has(const void *arg, const struct ky_instance *i);

struct ky_shifts {
	struct ky_instance **v; /* owned; each thread's, in order of their begins */
	size_t n;
};

/* 0 or -ENOMEM; then there is nothing to free. */
int ky_shifts_make(struct ky_shifts *s, struct ky_instance *const *all, size_t n);
void ky_shifts_deinit(struct ky_shifts *s);
/*
 * Returns 1 if the affected instances, which are some of these, have the property by chance: after
 * several shifts, as many of them have it. Otherwise 0 or -ENOMEM.
 */
int ky_shifts_test(const struct ky_shifts *s, struct ky_instance *const *affected, size_t n,
	ky_shifts_has *has, const void *arg);

#endif
