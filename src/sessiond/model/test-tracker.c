/* SPDX-License-Identifier: MIT */
#include "sessiond/model/tracker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_narrowing(void **state)
{
	struct tracker t = {0};

	assert_true(tracker_has(&t, 1));
	assert_int_equal(tracker_remove(&t, 1), -EINVAL);
	assert_int_equal(tracker_add(&t, 1), 0);
	assert_int_equal(tracker_add(&t, 1), 0);
	assert_int_equal(tracker_add(&t, 2), 0);
	assert_int_equal(tracker_add(&t, 3), 0);
	assert_false(tracker_has(&t, 0));
	assert_int_equal(tracker_remove(&t, 1), 0);
	assert_int_equal(tracker_remove(&t, 1), -ENOENT);
	assert_true(!tracker_has(&t, 1) && tracker_has(&t, 2) && tracker_has(&t, 3));
	assert_int_equal(tracker_remove(&t, 3), 0);
	assert_int_equal(tracker_remove(&t, 2), 0);
	/* after the removal of the last value the tracker has none, not all */
	assert_false(tracker_has(&t, 2));
	tracker_reset(&t, true);
	assert_true(tracker_has(&t, 2));
	tracker_reset(&t, false);
	assert_false(tracker_has(&t, 2));
	tracker_deinit(&t);
}

static void test_bound(void **state)
{
	struct tracker t = {0};

	for (uint32_t i = 0; i < TRACKER_VALUES_MAX; i++)
		assert_int_equal(tracker_add(&t, i), 0);
	assert_int_equal(tracker_add(&t, TRACKER_VALUES_MAX), -EDQUOT);
	assert_int_equal(tracker_add(&t, 0), 0);
	tracker_deinit(&t);
}

/* A copy is as narrow as the original, also without values, and has values of its own. */
static void test_copy(void **state)
{
	struct tracker t = {0}, copy;

	assert_int_equal(tracker_copy(&copy, &t), 0);
	assert_true(tracker_has(&copy, 1));
	tracker_deinit(&copy);
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(tracker_add(&t, i), 0);
	assert_int_equal(tracker_copy(&copy, &t), 0);
	tracker_reset(&t, false);
	assert_true(tracker_has(&copy, 1) && tracker_has(&copy, 2) && tracker_has(&copy, 3));
	assert_false(tracker_has(&copy, 4));
	assert_int_equal(tracker_remove(&copy, 2), 0);
	assert_int_equal(copy.n, 2);
	tracker_deinit(&copy);
	assert_true(tracker_has(&copy, 4));
	assert_int_equal(tracker_copy(&copy, &t), 0);
	assert_false(tracker_has(&copy, 1));
	tracker_deinit(&copy);
	tracker_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_narrowing),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
