/* SPDX-License-Identifier: MIT */
#include "explain/stats.h"

#include <math.h>

struct ranked {
	double v;
	size_t i; /* of the value: says its sample, and makes sorting deterministic */
};

double ky_stats_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : 0;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void ky_stats_sort(double *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), compare_doubles);
}

double ky_stats_quantile(const double *sorted, size_t n, double q)
{
	return n ? sorted[KY_MIN(n - 1, (size_t)(q * (double)n))] : 0;
}

double ky_stats_median(const double *sorted, size_t n)
{
	return n ? (sorted[(n - 1) / 2] + sorted[n / 2]) / 2 : 0;
}

static int compare_weighted(const void *a, const void *b)
{
	const struct ky_weighted *x = a, *y = b;

	return (x->v > y->v) - (x->v < y->v);
}

double ky_stats_weighted_median(struct ky_weighted *v, size_t n)
{
	double half = 0, sum = 0;
	size_t i = 0;

	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_weighted);
	for (size_t k = 0; k < n; k++)
		half += v[k].weight / 2;
	while (i + 1 < n && (sum += v[i].weight) <= half)
		i++;
	return v[i].v;
}

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->v != y->v)
		return x->v < y->v ? -1 : 1;
	return (x->i > y->i) - (x->i < y->i);
}

static struct ranked *rank(const double *a, size_t na, const double *b, size_t nb)
{
	struct ranked *both = calloc(na + nb + 1, sizeof(*both));

	for (size_t i = 0; both && i < na + nb; i++)
		both[i] = (struct ranked){i < na ? a[i] : b[i - na], i};
	if (both)
		qsort(both, na + nb, sizeof(*both), compare_ranked);
	return both;
}

double ky_stats_mann_whitney(const double *a, size_t na, const double *b, size_t nb)
{
	double ranks = 0, ties = 0, n = (double)na + (double)nb, product = (double)na * (double)nb;
	double u, variance;
	struct ranked *both;

	if (!na || !nb)
		return 1;
	both = rank(a, na, b, nb);
	if (!both)
		return -1;
	for (size_t i = 0, j; i < na + nb; i = j) {
		double equal;

		for (j = i; j < na + nb && both[j].v == both[i].v;)
			j++;
		for (size_t k = i; k < j; k++)
			ranks += both[k].i < na ? (double)(i + j + 1) / 2 : 0;
		equal = (double)(j - i);
		ties += equal * equal * equal - equal;
	}
	free(both);
	u = ranks - (double)na * ((double)na + 1) / 2;
	variance = product / 12 * (n + 1 - ties / (n * (n - 1)));
	return variance > 0 ? 0.5 * erfc((u - product / 2 - 0.5) / sqrt(2 * variance)) : 1;
}

/* lgamma() sets a global variable. */
static double log_factorial(size_t n)
{
	int sign;

	return lgamma_r((double)n + 1, &sign);
}

static double log_choose(size_t n, size_t k)
{
	return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

double ky_stats_fisher(size_t a, size_t na, size_t b, size_t nb)
{
	size_t marked = a + b, n = na + nb;
	double all = log_choose(n, na), p = 0;

	for (size_t i = a; i <= KY_MIN(marked, na); i++) {
		if (na - i <= n - marked)
			p += exp(log_choose(marked, i) + log_choose(n - marked, na - i) - all);
	}
	return KY_MIN(p, 1);
}

double ky_stats_binomial(size_t n, size_t k, double q)
{
	double p = 0;

	if (!k || q >= 1)
		return 1;
	if (q <= 0)
		return 0;
	for (size_t i = k; i <= n; i++)
		p += exp(log_choose(n, i) + (double)i * log(q) + (double)(n - i) * log1p(-q));
	return KY_MIN(p, 1);
}

/* Squared distances from the mean, of n values with this sum and sum of squares. */
static double scatter(double sum, double squares, size_t n)
{
	return squares - sum * sum / (double)n;
}

size_t ky_stats_split(const double *logs, size_t n)
{
	return ky_stats_split_from(logs, n, n / 2);
}

size_t ky_stats_split_from(const double *logs, size_t n, size_t from)
{
	double sum = 0, squares = 0, below = 0, below_squares = 0, best = 0, spread = 0, apart = 0;
	size_t cut = 0;

	for (size_t i = 0; i < n; i++) {
		sum += logs[i];
		squares += logs[i] * logs[i];
	}
	for (size_t k = 1; k + 2 < n; k++) {
		double d, between;

		below += logs[k - 1];
		below_squares += logs[k - 1] * logs[k - 1];
		if (k < from)
			continue;
		d = (sum - below) / (double)(n - k) - below / (double)k;
		between = (double)k * (double)(n - k) * d * d;
		if (between <= best)
			continue;
		best = between;
		cut = k;
		apart = d;
		spread = (scatter(below, below_squares, k) +
				 scatter(sum - below, squares - below_squares, n - k)) /
			 (double)n;
	}
	if (!cut)
		return 0;
	return apart / sqrt(KY_MAX(spread, 1e-9)) >= 4 && apart > log(1.5) ? cut : 0;
}

double ky_stats_tail(const double *logs, size_t n, double part)
{
	double median = ky_stats_quantile(logs, n, .5);
	double spread = KY_MAX(ky_stats_quantile(logs, n, .841) - median, .02);
	double z = (part <= .02 ? 2.33 : part < .05 ? 2.0 : 1.7) + .35;

	return median + z * spread + log(1.3);
}

double ky_stats_spearman(const double *v, size_t n)
{
	double sum = 0, x = (double)n;
	struct ranked *ranks;

	if (n < 3)
		return 0;
	ranks = rank(v, n, NULL, 0);
	if (!ranks)
		return NAN;
	for (size_t i = 0; i < n; i++) {
		double d = (double)i - (double)ranks[i].i;

		sum += d * d;
	}
	free(ranks);
	return 1 - 6 * sum / (x * (x * x - 1));
}

struct ky_stats_line ky_stats_line(const double *x, const double *y, size_t n)
{
	double mx = ky_stats_mean(x, n), my = ky_stats_mean(y, n), xx = 0, xy = 0, yy = 0;

	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - mx) * (x[i] - mx);
		xy += (x[i] - mx) * (y[i] - my);
		yy += (y[i] - my) * (y[i] - my);
	}
	return (struct ky_stats_line){
		.slope = xx > 0 ? xy / xx : 0,
		.r2 = xx > 0 && yy > 0 ? xy * xy / (xx * yy) : 0,
	};
}
