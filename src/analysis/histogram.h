/* SPDX-License-Identifier: MIT */
/*
 * Numbers in 1,024 steps for each power of two: percentiles within 0.1 %; count, sum, least and
 * greatest exactly. Memory is 8 KiB for each power of two that occurs, however many numbers.
 * Histograms can be added. A histogram has either integers or floating-point numbers.
 */
#ifndef ANALYSIS_HISTOGRAM_H
#define ANALYSIS_HISTOGRAM_H

#include "base/util.h"

#define KY_HISTOGRAM_STEPS 1024
#define KY_HISTOGRAM_BARS  65 /* 0, and then one for each power of two */

/* Zeroed at first. */
struct ky_histogram {
	uint64_t **steps; /* owned, by power: KY_HISTOGRAM_STEPS each; NULL: no number */
	unsigned n_powers;
	uint64_t n;
	/* of integers: */
	unsigned __int128 sum;
	uint64_t min, max; /* if n is not 0 */
};

/* 0 or -ENOMEM. */
int ky_histogram_add(struct ky_histogram *h, uint64_t value);
/*
 * The number that a part in a thousand of all numbers does not exceed; 0 without any. 0 is the
 * least and 1000 the greatest, exactly; others are at most 0.1 % off.
 */
uint64_t ky_histogram_permille(const struct ky_histogram *h, unsigned permille);
/* Returns how many numbers a bar has; *ret_from: the least number that it can have. */
uint64_t ky_histogram_bar(const struct ky_histogram *h, unsigned bar, uint64_t *ret_from);

/*
 * The same for floating-point numbers, which must be neither below 0 nor NaN. The callers keep the
 * least and the greatest number.
 */
int ky_histogram_add_float(struct ky_histogram *h, double value);
double ky_histogram_permille_float(const struct ky_histogram *h, unsigned permille);
/* bar: below h->n_powers. */
uint64_t ky_histogram_bar_float(const struct ky_histogram *h, unsigned bar, double *ret_from);

void ky_histogram_deinit(struct ky_histogram *h);

#endif
