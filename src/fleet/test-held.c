/* SPDX-License-Identifier: MIT */
#include "fleet/held.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/clock.h"
#include "svc/tree.h"

#define HOUR_S 3600

static int64_t step_s, passed_s; /* by which the clock was set, and the time that has passed */
static char dir[] = "/tmp/kymo-held-XXXXXX";

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int ret = __real_clock_gettime(id, ts);

	ts->tv_sec += passed_s + (id == CLOCK_REALTIME ? step_s : 0);
	return ret;
}

static void open_held(struct held *h)
{
	struct fleet_config c = {.name = "web", .hold_size = 1u << 20, .hold_us = 10000000};
	char why[256];

	snprintf(c.hold, sizeof(c.hold), "%s", dir);
	step_s = passed_s = 0;
	assert_int_equal(held_open(h, &c, why, sizeof(why)), 0);
	assert_int_equal(held_make(h, "one"), 0);
}

static bool is_held(const struct held *h, const char *id)
{
	return !faccessat(h->dir, id, F_OK, 0);
}

static void test_time(void **state)
{
	struct held h;

	open_held(&h);
	passed_s = 9;
	held_expire(&h);
	assert_true(is_held(&h, "one"));
	passed_s = 12;
	held_expire(&h);
	assert_false(is_held(&h, "one"));
	close(h.dir);
}

/* A snapshot that was taken before the clock was set is held as long as others. */
static void test_steps(void **state)
{
	static const int64_t steps[] = {HOUR_S, -HOUR_S, 3};
	struct held h;

	for (size_t i = 0; i < KY_ARRAY_SIZE(steps); i++) {
		open_held(&h);
		passed_s = 5;
		step_s = steps[i];
		held_expire(&h);
		assert_true(is_held(&h, "one"));
		passed_s = 9;
		held_expire(&h);
		assert_true(is_held(&h, "one"));
		passed_s = 12;
		held_expire(&h);
		assert_false(is_held(&h, "one"));
		close(h.dir);
	}
}

/* The clock was wrong when the agent started, and is right now. */
static void test_future(void **state)
{
	struct held h;

	open_held(&h);
	h.ahead_s -= HOUR_S;
	held_expire(&h);
	assert_true(is_held(&h, "one"));
	passed_s = 12;
	held_expire(&h);
	assert_false(is_held(&h, "one"));
	close(h.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_future),
	};
	int failed;

	assert_non_null(mkdtemp(dir));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ky_tree_remove(AT_FDCWD, dir);
	return failed;
}
