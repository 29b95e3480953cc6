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
	uint64_t sum = 0;

	for (size_t i = 0; i < N; i++)
		if (__builtin_add_overflow(sum, numbers[i], &sum))
			sum = UINT64_MAX;
	qsort(numbers, N, sizeof(*numbers), by_value);
	assert_int_equal(h->n, N);
	assert_int_equal(h->sum, sum);
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

static void test_merged(void **state)
{
	struct ky_histogram parts[3] = {0}, h = {0};

	(void)state;
	make_numbers(7);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(ky_histogram_add(&parts[i % 2], numbers[i]), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ky_histogram_merge(&h, &parts[i]), 0);
		ky_histogram_deinit(&parts[i]);
	}
	check_histogram(&h);
	ky_histogram_deinit(&h);
}

static void test_small(void **state)
{
	struct ky_histogram h = {0};

	(void)state;
	assert_int_equal(ky_histogram_permille(&h, 500), 0);
	for (uint64_t v = 1; v <= 2048; v *= 2)
		assert_int_equal(ky_histogram_add(&h, v), 0);
	assert_int_equal(ky_histogram_add(&h, UINT64_MAX), 0);
	assert_int_equal(ky_histogram_count(&h, 0, 1), 0);
	assert_int_equal(ky_histogram_count(&h, 16, 64), 2);
	assert_int_equal(ky_histogram_count(&h, 1024, 4096), 2);
	assert_int_equal(ky_histogram_permille(&h, 1000), UINT64_MAX);
	assert_int_equal(h.sum, UINT64_MAX);
	ky_histogram_deinit(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
