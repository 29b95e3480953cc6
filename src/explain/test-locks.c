/* SPDX-License-Identifier: MIT */
/* Mutexes that processes share: who held them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "explain/locks.h"

/* A thread that waits for a condition is the first holder; another one has the mutex meanwhile. */
static void holder_behind_a_lent_hold(void **state)
{
	const struct ky_hold lent = {.from = 10, .to = INT64_MAX, .thread = 1};
	const struct ky_hold held = {.from = 30, .to = INT64_MAX, .thread = 2};
	struct ky_locks l = {0};
	struct ky_mutex *here = ky_locks_get(&l, 1, 0x1040);
	struct ky_mutex *there = ky_locks_get(&l, 2, 0x5040);
	const struct ky_mutex *alias = NULL;

	assert_int_equal(ky_mutex_acquire(there, &lent), 0);
	assert_int_equal(ky_mutex_lend(there, 1, 20), 0);
	assert_int_equal(ky_mutex_acquire(there, &held), 0);
	for (int64_t ns = 40; ns < 80 && !alias; ns += 10)
		alias = ky_locks_find_alias(&l, here, ns, ns + 10);
	assert_ptr_equal(alias, there);
	assert_int_equal(here->n_differ, 0);
	ky_locks_deinit(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holder_behind_a_lent_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
