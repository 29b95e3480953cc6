/* SPDX-License-Identifier: MIT */
#include "sessiond/model/trigger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int parse_trigger(
	struct trigger_spec *t, const char *when, const char *action, const char *rate)
{
	char why[TRIGGER_ERROR_MAX] = "";
	int ret = trigger_spec_init(t, "t", when, action, rate, NULL, why);

	assert_int_equal(ret == -EINVAL, *why != '\0');
	assert_null(strchr(why, '\n'));
	return ret;
}

static void test_conditions(void **state)
{
	static const struct {
		const char *text;
		enum condition_kind kind;
		bool below, percent;
		uint64_t limit;
	} good[] = {
		{"events/s > 10000", WHEN_EVENTS_RATE, false, false, 10000},
		{"events/s<1", WHEN_EVENTS_RATE, true, false, 1},
		{" bytes/s > 10M ", WHEN_BYTES_RATE, false, false, 10 << 20},
		{"discarded", WHEN_DISCARDED, false, false, 0},
		{"discarded > 7", WHEN_DISCARDED, false, false, 7},
		{"buffers > 80%", WHEN_BUFFERS, false, true, 80},
		{"size > 1G", WHEN_SIZE, false, false, 1 << 30},
		{"disk-free < 5%", WHEN_DISK_FREE, true, true, 5},
		{"disk-free < 512M", WHEN_DISK_FREE, true, false, 512 << 20},
		{"consumer-failing", WHEN_FAILING, false, false, 0},
		{"rotated", WHEN_ROTATED, false, false, 0},
		{"died", WHEN_DIED, false, false, 0},
		{"died(shop*)", WHEN_DIED, false, false, 0},
		{"event(shop:*)", WHEN_EVENT, false, false, 0},
		{"event( shop:order , warning ) && a > 1 && b", WHEN_EVENT, false, false, 0},
		{"span(shop:checkout) > 20ms", WHEN_SPAN, false, false, 20000000},
		{"span(shop:*)>1h && paid", WHEN_SPAN, false, false, UINT64_C(3600000000000)},
	};
	struct trigger_spec t;

	for (size_t i = 0; i < KY_ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_trigger(&t, good[i].text, "notify", NULL), 0);
		assert_int_equal(t.condition.kind, good[i].kind);
		assert_int_equal(t.condition.below, good[i].below);
		assert_int_equal(t.condition.percent, good[i].percent);
		assert_int_equal(t.condition.limit, good[i].limit);
		trigger_spec_deinit(&t);
	}
}

static void test_bad_conditions(void **state)
{
	static const char *const bad[] = {"", "events", "events/s", "events/s >", "events/s > x",
		"events/s = 5", "events/s > 5%", "bytes/s > 5%", "buffers > 80", "buffers > 101%",
		"buffers < 5%", "size < 1G", "size > 1X", "disk-free > 5%", "disk-free < -1",
		"discarded(x)", "died()", "died(x", "died(x) > 5", "died > 1", "rotated 5", "> 5",
		"discarded > 99999999999999999999", "buffers > %", "event", "event()",
		"event(,info)", "event(x, loud)", "event(x) > 5", "event(x) &&", "event(x) && a >",
		"span(x)", "span(x) < 5", "span(x, info) > 5", "span(x) > soon",
		"span(x) > 99999999999999999h"};
	struct trigger_spec t;

	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse_trigger(&t, bad[i], "notify", NULL), -EINVAL);
		trigger_spec_deinit(&t);
	}
}

static void test_actions(void **state)
{
	static const char *const bad[] = {"", "snap", "snapshot,", ",notify", "run",
		"run:", "run: ", "notify,notify,notify,notify,notify,notify,notify,notify,notify"};
	struct trigger_spec t;

	assert_int_equal(parse_trigger(&t, "died", "snapshot,stop,run:echo a,b", "3/1m"), 0);
	assert_int_equal(t.n_actions, 3);
	assert_true(trigger_has_action(&t, DO_STOP) && !trigger_has_action(&t, DO_ROTATE));
	assert_string_equal(t.command, "echo a,b");
	assert_int_equal(t.rate_n, 3);
	assert_int_equal(t.rate_ns, UINT64_C(60000000000));
	trigger_spec_deinit(&t);
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse_trigger(&t, "died", bad[i], NULL), -EINVAL);
		trigger_spec_deinit(&t);
	}
}

static void test_rates(void **state)
{
	static const char *const bad[] = {"1", "/1m", "0/1m", "1/", "1/x", "x/1m", "-1/1m", "1/0",
		"99999999999999999999999999/1m"};
	struct trigger_spec t;

	assert_int_equal(parse_trigger(&t, "died", "notify", ""), 0);
	assert_int_equal(t.rate_ns, UINT64_C(1000000000));
	trigger_spec_deinit(&t);
	assert_int_equal(parse_trigger(&t, "died", "snapshot", NULL), 0);
	assert_int_equal(t.rate_ns, UINT64_C(60000000000));
	trigger_spec_deinit(&t);
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse_trigger(&t, "died", "notify", bad[i]), -EINVAL);
		trigger_spec_deinit(&t);
	}
}

static void test_met(void **state)
{
	struct condition c = {.limit = 5};

	assert_true(!condition_is_met(&c, 5) && condition_is_met(&c, 6));
	c.below = true;
	assert_true(!condition_is_met(&c, 5) && condition_is_met(&c, 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_bad_conditions),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
