/* SPDX-License-Identifier: MIT */
/*
 * Numbers in 1,024 steps for each power of two: percentiles within 0.1 %; count, sum, least and
 * greatest exactly. Memory is 8 KiB for each power of two that occurs, however many numbers.
 * Histograms can be added.
 */
#ifndef ANALYSIS_HISTOGRAM_H
#define ANALYSIS_HISTOGRAM_H

#include "base/util.h"

#define KY_HISTOGRAM_STEPS  1024
#define KY_HISTOGRAM_POWERS 55 /* numbers below 1024, then one for each power of two */

/* Zeroed at first. */
struct ky_histogram {
	uint64_t *steps[KY_HISTOGRAM_POWERS]; /* owned, KY_HISTOGRAM_STEPS each; NULL: no number */
	uint64_t n, sum;		      /* the sum saturates */
	uint64_t min, max;		      /* if n is not 0 */
};

/* 0 or -ENOMEM. */
int ky_histogram_add(struct ky_histogram *h, uint64_t value);
int ky_histogram_merge(struct ky_histogram *h, const struct ky_histogram *other);
/*
 * The number that a part in a thousand of all numbers does not exceed; 0 without any. 0 is the
 * least and 1000 the greatest, exactly; others are at most 0.1 % off.
 */
uint64_t ky_histogram_permille(const struct ky_histogram *h, unsigned permille);
/* How many numbers v with from <= v < to, for powers of two, or 0. */
uint64_t ky_histogram_count(const struct ky_histogram *h, uint64_t from, uint64_t to);
void ky_histogram_deinit(struct ky_histogram *h);

#endif
