/* SPDX-License-Identifier: MIT */
/* The tests that decide what `explain` claims, against values that were enumerated. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "explain/stats.h"

static void assert_near(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.12g is not %.12g", value, expected);
}

static void means_and_quantiles(void **state)
{
	double v[] = {5, 1, 4, 2, 3};

	assert_near(ky_stats_mean(v, 5), 3, 0);
	assert_near(ky_stats_mean(v, 0), 0, 0);
	ky_stats_sort(v, 5);
	assert_near(v[0], 1, 0);
	assert_near(v[4], 5, 0);
	assert_near(ky_stats_quantile(v, 5, .5), 3, 0);
	assert_near(ky_stats_quantile(v, 5, 1), 5, 0);
	assert_near(ky_stats_quantile(v, 0, .5), 0, 0);
	assert_near(ky_stats_median(v, 5), 3, 0);
	assert_near(ky_stats_median(v, 4), 2.5, 0);
	assert_near(ky_stats_median(v, 1), 1, 0);
	assert_near(ky_stats_median(v, 0), 0, 0);
}

static void weighted_median(void **state)
{
	struct ky_weighted v[] = {{9, 1}, {1, 1}, {5, 1}, {3, 4}};

	assert_near(ky_stats_weighted_median(v, 4), 3, 0);
	assert_near(v[3].v, 9, 0);
	v[1].weight = .5; /* 1 and 3 have 1.5 of 3.5 now */
	assert_near(ky_stats_weighted_median(v, 4), 5, 0);
	assert_near(ky_stats_weighted_median(v, 1), 1, 0);
	assert_near(ky_stats_weighted_median(v, 0), 0, 0);
}

static void mann_whitney(void **state)
{
	static const double a[] = {4, 6, 8, 9, 11, 13}, b[] = {1, 2, 3, 5, 7, 10};
	static const double c[] = {1, 1, 2, 2, 5, 6, 7}, d[] = {1, 1, 1, 2, 2, 3};

	/* U = 29 of 36: 0.0465 of all divisions are as extreme; the approximation is near. */
	assert_near(ky_stats_mann_whitney(a, 6, b, 6), 0.0465, 0.003);
	assert_near(ky_stats_mann_whitney(b, 6, a, 6), 1 - 0.0325, 0.003);
	/* With ties: 0.133. */
	assert_near(ky_stats_mann_whitney(c, 7, d, 6), 0.133, 0.01);
	assert_near(ky_stats_mann_whitney(a, 0, b, 6), 1, 0);
	assert_near(ky_stats_mann_whitney(a, 1, a, 1), 1, 0);
}

static void fisher(void **state)
{
	assert_near(ky_stats_fisher(3, 4, 1, 4), 0.24285714285714285, 1e-9);
	assert_near(ky_stats_fisher(8, 10, 2, 10), 0.011507068782610578, 1e-9);
	assert_near(ky_stats_fisher(0, 5, 3, 5), 1, 1e-9);
	assert_near(ky_stats_fisher(30, 30, 0, 500) / 1.14455581479383e-49, 1, 1e-6);
}

static void binomial(void **state)
{
	assert_near(ky_stats_binomial(10, 8, .5), 0.0546875, 1e-12);
	assert_near(ky_stats_binomial(20, 3, .05), 0.0754836737884963, 1e-9);
	assert_near(ky_stats_binomial(29, 29, .77), 0.0005107766436462449, 1e-9);
	assert_near(ky_stats_binomial(5, 0, .3), 1, 0);
	assert_near(ky_stats_binomial(5, 1, 0), 0, 0);
	assert_near(ky_stats_binomial(5, 5, 1), 1, 0);
}

static void split_groups(void **state)
{
	double v[100];

	for (size_t i = 0; i < 100; i++)
		v[i] = (i < 90 ? 1 : 5) + (double)(i % 10) / 100;
	ky_stats_sort(v, 100);
	assert_int_equal(ky_stats_split(v, 100), 90);
	/* Evenly spread: no group of its own. */
	for (size_t i = 0; i < 100; i++)
		v[i] = (double)i / 10;
	assert_int_equal(ky_stats_split(v, 100), 0);
	/* Distinct, but less than a factor of 1.5 apart. */
	for (size_t i = 0; i < 100; i++)
		v[i] = (i < 90 ? 1 : 1.3) + (double)(i % 10) / 1000;
	ky_stats_sort(v, 100);
	assert_int_equal(ky_stats_split(v, 100), 0);
	/* A group in the lower half is none of slow ones. */
	for (size_t i = 0; i < 100; i++)
		v[i] = (i < 10 ? 1 : 5) + (double)(i % 10) / 100;
	ky_stats_sort(v, 100);
	assert_int_equal(ky_stats_split(v, 100), 0);
	assert_int_equal(ky_stats_split_from(v, 100, 10), 10);
	assert_int_equal(ky_stats_split(v, 2), 0);
}

static void spearman(void **state)
{
	static const double up[] = {1, 2, 3, 4, 5}, down[] = {5, 4, 3, 2, 1};
	static const double mixed[] = {2, 1, 4, 3, 5};

	assert_near(ky_stats_spearman(up, 5), 1, 1e-12);
	assert_near(ky_stats_spearman(down, 5), -1, 1e-12);
	assert_near(ky_stats_spearman(mixed, 5), 0.8, 1e-12);
	assert_near(ky_stats_spearman(up, 2), 0, 0);
}

static void line_through_points(void **state)
{
	static const double x[] = {1, 2, 3, 4}, y[] = {3, 5, 7, 9}, z[] = {1, 3, 2, 4};
	struct ky_stats_line l = ky_stats_line(x, y, 4);

	assert_near(l.slope, 2, 1e-12);
	assert_near(l.r2, 1, 1e-12);
	l = ky_stats_line(x, z, 4);
	assert_near(l.slope, 0.8, 1e-12);
	assert_near(l.r2, 0.64, 1e-12);
	l = ky_stats_line(x, x, 0);
	assert_near(l.slope, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(means_and_quantiles),
		cmocka_unit_test(weighted_median),
		cmocka_unit_test(mann_whitney),
		cmocka_unit_test(fisher),
		cmocka_unit_test(binomial),
		cmocka_unit_test(split_groups),
		cmocka_unit_test(spearman),
		cmocka_unit_test(line_through_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
