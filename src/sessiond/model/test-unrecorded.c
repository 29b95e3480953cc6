/* SPDX-License-Identifier: MIT */
#include "sessiond/model/unrecorded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void expect_begin(const struct unrecorded *u, const char *begin)
{
	struct ky_buf text = {0};

	unrecorded_describe(&text, u);
	assert_non_null(text.data);
	assert_memory_equal(text.data, begin, strlen(begin));
	ky_buf_deinit(&text);
}

/* An application that changes its user again and again reports each time. */
static void test_reports_often(void **state)
{
	struct unrecorded u = {0};

	(void)state;
	for (int i = 0; i < 3; i++)
		unrecorded_add(&u, "shop", 7, 1500000);
	unrecorded_add(&u, "post", 8, UNRECORDED_TO_ITS_END);
	unrecorded_add(&u, "post", 8, 1000);
	expect_begin(&u,
		"2 applications ran unrecorded for a time: shop (pid 7, 4.5 ms), post (pid 8, until it ended); ");
	unrecorded_deinit(&u);
}

static void test_many(void **state)
{
	struct unrecorded u = {0};

	(void)state;
	for (int pid = 1; pid <= 7; pid++) {
		unrecorded_add(&u, "a", pid, 1000000);
		unrecorded_add(&u, "a", pid, 1000000);
	}
	expect_begin(&u,
		"7 applications ran unrecorded for a time: a (pid 1, 2.0 ms), a (pid 2, 2.0 ms), a (pid 3, 2.0 ms), a (pid 4, 2.0 ms), a (pid 5, 2.0 ms) and 2 more; ");
	unrecorded_deinit(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports_often),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
