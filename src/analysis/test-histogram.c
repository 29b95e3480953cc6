/* SPDX-License-Identifier: MIT */
/* Percentiles against sorted numbers; sums; adding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/histogram.h"

#define N 20000

static uint64_t numbers[N];

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* From 0 to 2^60, small ones and large ones as often. */
static void make_numbers(uint64_t seed)
{
	for (size_t i = 0; i < N; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		numbers[i] = seed >> (4 + (seed >> 8) % 60);
	}
}

static void expect_near(uint64_t got, uint64_t wanted)
{
	uint64_t off = got > wanted ? got - wanted : wanted - got;

	assert_true(off <= wanted / 1000 + (wanted >= 1024));
}

static void check_histogram(const struct ky_histogram *h)
{
	unsigned __int128 sum = 0;

	for (size_t i = 0; i < N; i++)
		sum += numbers[i];
	qsort(numbers, N, sizeof(*numbers), by_value);
	assert_int_equal(h->n, N);
	assert_true(h->sum == sum);
	assert_int_equal(h->min, numbers[0]);
	assert_int_equal(h->max, numbers[N - 1]);
	assert_int_equal(ky_histogram_permille(h, 0), numbers[0]);
	assert_int_equal(ky_histogram_permille(h, 1000), numbers[N - 1]);
	for (unsigned p = 1; p < 1000; p++)
		expect_near(ky_histogram_permille(h, p), numbers[(N * p + 999) / 1000 - 1]);
}

static void test_percentiles(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++) {
		struct ky_histogram h = {0};

		make_numbers(seed);
		for (size_t i = 0; i < N; i++)
			assert_int_equal(ky_histogram_add(&h, numbers[i]), 0);
		check_histogram(&h);
		ky_histogram_deinit(&h);
	}
}

static void test_small(void **state)
{
	struct ky_histogram h = {0};
	uint64_t from;

	(void)state;
	assert_int_equal(ky_histogram_permille(&h, 500), 0);
	for (uint64_t v = 1; v <= 2048; v *= 2)
		assert_int_equal(ky_histogram_add(&h, v), 0);
	assert_int_equal(ky_histogram_add(&h, UINT64_MAX), 0);
	assert_int_equal(ky_histogram_bar(&h, 0, &from), 0);
	assert_int_equal(ky_histogram_bar(&h, 5, &from), 1);
	assert_int_equal(from, 16);
	assert_int_equal(ky_histogram_bar(&h, 64, &from), 1);
	assert_int_equal(from, (uint64_t)1 << 63);
	assert_int_equal(ky_histogram_permille(&h, 1000), UINT64_MAX);
	assert_true(h.sum == (unsigned __int128)UINT64_MAX + 4095);
	ky_histogram_deinit(&h);
}

static void expect_float(double value)
{
	struct ky_histogram h = {0};
	double got, from;

	assert_int_equal(ky_histogram_add_float(&h, value), 0);
	got = ky_histogram_permille_float(&h, 500);
	assert_true(got == value || (got > value * 0.9995 && got < value * 1.0005));
	assert_int_equal(ky_histogram_bar_float(&h, h.n_powers - 1, &from), 1);
	assert_true(from == value || (from < value && from * 2 > value));
	ky_histogram_deinit(&h);
}

static void test_floats(void **state)
{
	(void)state;
	expect_float(0);
	expect_float(-0.0);
	expect_float(__builtin_inf());
	for (double v = 1e-300; v < 1e300; v *= 7)
		expect_float(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_floats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
