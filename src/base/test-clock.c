/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* Wall-clock time of a clock value, as a reader of the trace computes it. */
static int64_t to_wall_ns(const struct ky_clock_info *i, uint64_t value)
{
	unsigned __int128 cycles = (unsigned __int128)value + i->offset;

	return i->offset_s * 1000000000 + (int64_t)(cycles * 1000000000u / i->freq);
}

static void agrees_with_wall_clock(enum ky_clock clock)
{
	struct ky_clock_info info;
	uint64_t before, value, after;

	ky_clock_measure(clock, &info);
	assert_int_equal(info.clock, clock);
	assert_true(info.offset < info.freq);
	before = ky_clock_ns(CLOCK_REALTIME);
	value = ky_clock_read(clock);
	after = ky_clock_ns(CLOCK_REALTIME);
	assert_in_range(to_wall_ns(&info, value), before - 1000000, after + 1000000);
}

static void test_monotonic(void **state)
{
	agrees_with_wall_clock(KY_CLOCK_MONOTONIC);
}

static void test_counter(void **state)
{
	setenv("KYMO_CLOCK", "tsc", 1);
	agrees_with_wall_clock(ky_clock_choose());
}

static void test_environment_decides(void **state)
{
	setenv("KYMO_CLOCK", "monotonic", 1);
	assert_int_equal(ky_clock_choose(), KY_CLOCK_MONOTONIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_environment_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
