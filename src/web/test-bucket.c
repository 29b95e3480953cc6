/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "web/bucket.h"

#define SECOND 1000000000

static unsigned take_all(struct ky_bucket *b, int64_t now_ns)
{
	unsigned n = 0;

	while (ky_bucket_take(b, now_ns, 20, 10))
		n++;
	return n;
}

static void test_limits(void **state)
{
	struct ky_bucket b = {0};

	(void)state;
	assert_int_equal(take_all(&b, SECOND), 20);
	assert_int_equal(take_all(&b, SECOND), 0);
	assert_int_equal(take_all(&b, SECOND + SECOND / 20), 0);
	assert_int_equal(take_all(&b, 2 * (int64_t)SECOND), 10);
	assert_int_equal(take_all(&b, 1000 * (int64_t)SECOND), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
