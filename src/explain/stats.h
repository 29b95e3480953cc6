/* SPDX-License-Identifier: MIT */
/*
 * Statistics of `kymo explain`: the tests that decide what it may claim. Pure functions over arrays
 * of doubles. Each p is one-sided.
 */
#ifndef EXPLAIN_STATS_H
#define EXPLAIN_STATS_H

#include "base/util.h"

/* The mean of n values. */
double ky_stats_mean(const double *v, size_t n);
/* Sorts in place, in ascending order. */
void ky_stats_sort(double *v, size_t n);
/* The value at part q (0 .. 1) of a sorted array; 0 if it is empty. */
double ky_stats_quantile(const double *sorted, size_t n, double q);
/* The mean of the two values in the middle if n is even; 0 if the sorted array is empty. */
double ky_stats_median(const double *sorted, size_t n);
/* A value that stands for `weight` of its kind. */
struct ky_weighted {
	double v, weight;
};
/* Sorts in place. The least value that, with those below, has more than half of the weight. */
double ky_stats_weighted_median(struct ky_weighted *v, size_t n);
/*
 * P that values of a are as much greater than those of b by chance: Mann-Whitney's U, normal
 * approximation with ties and continuity correction. 1 if either is empty. -1 without memory.
 */
double ky_stats_mann_whitney(const double *a, size_t na, const double *b, size_t nb);
/* Fisher's exact test: P of at least a marked ones of na, if a + b of na + nb are marked. */
double ky_stats_fisher(size_t a, size_t na, size_t b, size_t nb);
/* P of at least k successes in n trials of probability q. */
double ky_stats_binomial(size_t n, size_t k, double q);
/*
 * Otsu's threshold in the upper half of sorted logarithms: the index at which a group of its own
 * begins. 0 if the groups' means are less than 4 standard deviations or ln 1.5 apart.
 */
size_t ky_stats_split(const double *logs, size_t n);
/* The same, of thresholds from an index on. */
size_t ky_stats_split_from(const double *logs, size_t n, size_t from);
/*
 * The mean logarithm that the slowest part (0 .. 1) of a log-normal distribution has, and ln 1.3
 * more: the sorted logarithms are its body. Tails of normal, exponential and gamma distributions
 * stay below.
 */
double ky_stats_tail(const double *logs, size_t n, double part);
/* Spearman's rank correlation of values with their index. NAN without memory. */
double ky_stats_spearman(const double *v, size_t n);

/* The straight line y = slope * x + c with the least squares; r2 is how much of y it explains. */
struct ky_stats_line {
	double slope, r2;
};
struct ky_stats_line ky_stats_line(const double *x, const double *y, size_t n);

#endif
