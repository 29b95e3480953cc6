/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/dump-room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static uint32_t take_all(struct dump_room *r, uid_t uid)
{
	uint32_t n = 0;

	while (n < 100000 && dump_room_take(r, uid))
		n++;
	return n;
}

static void test_halves(void **state)
{
	struct dump_room r = {.max = 1000};

	assert_int_equal(take_all(&r, 1001), 500);
	assert_int_equal(take_all(&r, 1002), 250);
	assert_int_equal(take_all(&r, 1001), 0);
	assert_true(dump_room_is_full(&r, 1001) && dump_room_is_full(&r, 1002));
	assert_false(dump_room_is_full(&r, 1003) || dump_room_is_full(&r, 0));
	assert_int_equal(take_all(&r, 1003), 125);
	assert_int_equal(take_all(&r, 0), 100000);
}

/* However many users there are, together they have no more than the limit. */
static void test_many_users(void **state)
{
	struct dump_room r = {.max = 1000};
	uint32_t n = 0;

	for (uid_t uid = 1; uid < 5000; uid++)
		n += take_all(&r, uid);
	assert_in_range(n, 990, 1000);
	assert_int_equal(r.n, n);
	assert_int_equal(r.n_users, DUMP_ROOM_USERS);
	assert_true(dump_room_is_full(&r, 1) && dump_room_is_full(&r, 4999));
	assert_false(dump_room_is_full(&r, 0));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_many_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
