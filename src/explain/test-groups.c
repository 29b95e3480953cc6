/* SPDX-License-Identifier: MIT */
/* Samples of instances, against those of a whole order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "explain/groups.h"

#define N 3000

static uint64_t seed = 1;

static uint64_t next(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

static int compare_by_random(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->random != y->random)
		return x->random < y->random ? -1 : 1;
	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Numbers of few values: those that are equal are taken by their begins. */
static void check_sample(size_t n, size_t max, uint64_t values)
{
	static struct ky_instance instances[N];
	static struct ky_instance *all[N];
	struct ky_instance **sample = NULL;
	size_t n_sample = 0;

	for (size_t i = 0; i < n; i++) {
		instances[i].random = next() % values;
		instances[i].begin_ns = (int64_t)i;
		all[i] = &instances[i];
	}
	assert_int_equal(ky_groups_sample(&sample, &n_sample, all, n, max), 0);
	assert_int_equal(n_sample, KY_MIN(n, max));
	if (n)
		qsort(all, n, sizeof(*all), compare_by_random);
	for (size_t i = 0; i < n_sample; i++)
		assert_ptr_equal(sample[i], all[i]);
	free(sample);
}

static void samples(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 999, 1000, 1001, N};

	for (size_t i = 0; i < KY_ARRAY_SIZE(sizes); i++) {
		for (size_t max = 1; max <= 1001; max += 100) {
			check_sample(sizes[i], max, 1);
			check_sample(sizes[i], max, 5);
			check_sample(sizes[i], max, UINT32_MAX);
		}
	}
	for (int i = 0; i < 300; i++)
		check_sample(next() % 200, 1 + next() % 200, 1 + next() % 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
