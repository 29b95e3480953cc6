/* SPDX-License-Identifier: MIT */
/* Sums over threads: a trace of a whole system has many, of which few have instances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "explain/search.h"

#define N	   1000
#define N_AFFECTED 40
#define N_THREADS  (SIZE_MAX / 2)

static void many_threads(void **state)
{
	static struct ky_instance instances[N];
	static struct ky_instance *all[N], *affected[N_AFFECTED];
	static double numbers[N];
	struct ky_explain x = {.threads.n = N_THREADS};
	struct ky_finding f = {.affected.v = affected, .affected.n = N_AFFECTED};
	struct ky_search w = {.x = &x, .f = &f};
	const struct ky_column c = {.n = N, .instances = all, .numbers = numbers};

	for (size_t i = 0; i < N; i++) {
		instances[i] = (struct ky_instance){
			.thread = (uint32_t)i % 3, .ordinal = (uint32_t)i, .begin_ns = (int64_t)i};
		all[i] = &instances[i];
		numbers[i] = (double)(i * i % 17);
		affected[i * N_AFFECTED / N] = all[i];
	}
	assert_int_equal(ky_sums_test(&w, &c, 0), 0);
	assert_int_equal(w.n_tests, 2);
	assert_int_equal(w.found.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
