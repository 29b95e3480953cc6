/* SPDX-License-Identifier: MIT */
#include "sessiond/model/lost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "sessiond/model/env.h"

#define KEPT 16

static void the_last_ones_are_kept(void **state)
{
	struct env e;
	char name[16];

	(void)state;
	env_init(&e);
	for (int i = 0; i <= KEPT; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		lost_add(&e, 1000, name, "session '%s' is lost", name);
	}
	assert_null(lost_find(&e, 1000, "s0"));
	assert_string_equal(lost_find(&e, 1000, "s1")->why, "session 's1' is lost");
	assert_non_null(lost_find(&e, 1000, "s16"));
	lost_clear(&e);
	assert_null(lost_find(&e, 1000, "s16"));
}

/* Another user learns neither the name nor where the trace is. */
static void others_do_not_know(void **state)
{
	struct env e;

	(void)state;
	env_init(&e);
	lost_add(&e, 1000, "s", "session 's' is lost");
	assert_null(lost_find(&e, 1001, "s"));
	assert_non_null(lost_find(&e, 0, "s"));
	lost_forget(&e, "other");
	assert_non_null(lost_find(&e, 1000, "s"));
	lost_forget(&e, "s");
	assert_null(lost_find(&e, 1000, "s"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_ones_are_kept),
		cmocka_unit_test(others_do_not_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
