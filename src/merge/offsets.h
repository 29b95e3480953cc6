/* SPDX-License-Identifier: MIT */
/*
 * How far the clocks of several hosts are apart, from what is known of pairs of them: that the one
 * must be set forward, against the other, by at most so much. Pure.
 *
 * The bounds are a system of differences: its closure (all shortest paths) holds the tightest
 * bounds, and a contradiction is a cycle whose sum is negative.
 */
#ifndef MERGE_OFFSETS_H
#define MERGE_OFFSETS_H

#include <stdbool.h>

#include "base/util.h"

#define OFFSETS_MAX	256u
#define OFFSETS_UNKNOWN INT64_MAX

struct offsets {
	size_t n;
	/* owned. [a * n + b]: the correction of b is at most so much above that of a */
	int64_t *most;
};

/* n: at most OFFSETS_MAX. Returns 0 or -ENOMEM. */
int offsets_init(struct offsets *o, size_t n);
void offsets_deinit(struct offsets *o);
/* Something happened on a at a_ns, and not later than something on b at b_ns. */
void offsets_add(struct offsets *o, size_t a, int64_t a_ns, size_t b, int64_t b_ns);

struct offset {
	int64_t shift_ns; /* to be added to the host's times */
	int64_t error_ns; /* at most, against host 0; OFFSETS_UNKNOWN if there is no such bound */
};

/*
 * Stores the correction of each host against host 0: the middle between the bounds, or the smallest
 * one that is possible. Returns 0, or -EDOM if bounds contradict each other, by *ret_ns.
 */
int offsets_solve(struct offsets *o, struct offset *ret, int64_t *ret_ns);

#endif
