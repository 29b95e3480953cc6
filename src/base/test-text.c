/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

struct value {
	const char *text;
	uint64_t value;
};

static void test_numbers(void **state)
{
	uint64_t v = 7;

	assert_int_equal(ky_parse_number("14", 14, &v), 0);
	assert_true(v == 14);
	assert_int_equal(ky_parse_number("15", 14, &v), -ERANGE);
	assert_int_equal(ky_parse_number("9", 4, &v), -ERANGE);
	assert_int_equal(ky_parse_number("", 4, &v), -EINVAL);
	assert_true(v == 14);
}

static void test_sizes(void **state)
{
	static const struct value good[] = {{"0", 0}, {"4096", 4096}, {"256K", 262144},
		{"256k", 262144}, {"1M", 1048576}, {"2g", UINT64_C(2) << 30},
		{"18446744073709551615", UINT64_MAX},
		{"17179869183G", UINT64_C(17179869183) << 30}};
	static const char *const bad[] = {"", "K", "x", "-1", "+1", " 1", "1 ", "1KB", "1.5M",
		"0x10", "1T", "18446744073709551616", "17179869184G", "99999999999999999999999999"};
	uint64_t v;

	for (size_t i = 0; i < KY_ARRAY_SIZE(good); i++) {
		assert_int_equal(ky_parse_size(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_true(ky_parse_size(bad[i], &v) < 0);
}

static void test_reals(void **state)
{
	static const struct {
		double v;
		bool is_single;
		const char *text;
	} reals[] = {{0.1, false, "0.1"}, {0.1f, true, "0.1"}, {0.1f, false, "0.10000000149011612"},
		{1.0 / 3, false, "0.3333333333333333"}, {-0.0, false, "-0"},
		{5e-324, false, "4.94065645841247e-324"},
		{1.7976931348623157e308, false, "1.7976931348623157e+308"},
		{INFINITY, false, "inf"}};
	char text[KY_REAL_TEXT];

	for (size_t i = 0; i < KY_ARRAY_SIZE(reals); i++) {
		assert_int_equal(ky_format_real(text, reals[i].v, reals[i].is_single),
			strlen(reals[i].text));
		assert_string_equal(text, reals[i].text);
	}
}

/* Programs of others may have set a locale in which printf() writes no dot. */
static void test_decimal_points(void **state)
{
	static const char *const numbers[][2] = {{"1,5e-05", "1.5e-05"},
		{"-0\xd9\xab"
		 "25",
			"-0.25"},
		{"1.5", "1.5"}, {"-12", "-12"}, {"1e+300", "1e+300"}, {"nan", "nan"},
		{"-INF", "-INF"}};
	char text[KY_REAL_TEXT];

	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers); i++) {
		snprintf(text, sizeof(text), "%s", numbers[i][0]);
		assert_int_equal(ky_put_decimal_point(text), strlen(numbers[i][1]));
		assert_string_equal(text, numbers[i][1]);
	}
}

static void test_times(void **state)
{
	static const struct value good[] = {{"7", 7}, {"7us", 7}, {"20ms", 20000}, {"5S", 5000000},
		{"1m", 60000000}, {"2h", UINT64_C(7200000000)}};
	static const char *const bad[] = {
		"", "s", "1 s", "1d", "-1s", "1.5s", "18446744073709551616", "6000000000h"};
	const char *name;
	uint64_t v, previous = 0;
	size_t n;

	for (size_t i = 0; i < KY_ARRAY_SIZE(good); i++) {
		assert_int_equal(ky_parse_usec(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_true(ky_parse_usec(bad[i], &v) < 0 && ky_parse_seconds(bad[i], &v) < 0);
	assert_true(!ky_parse_seconds("7", &v) && v == 7000000);
	assert_true(!ky_parse_seconds("20ms", &v) && v == 20000);
	for (n = 0; (name = ky_unit_of_time(n, &v)); n++) {
		assert_true(v > previous);
		previous = v;
	}
	assert_int_equal(n, 5);
}

static void test_names(void **state)
{
	static const char *const good[] = {"a", "A-b_c.9", "a.", "-", "auto-20261121-101500"};
	static const char *const bad[] = {
		"", ".", "..", ".a", "a/b", "a b", "a\n", "\xc3\xa9", "a:b"};
	char name[KY_OBJECT_NAME_MAX + 2];

	for (size_t i = 0; i < KY_ARRAY_SIZE(good); i++)
		assert_true(ky_name_valid(good[i]));
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++)
		assert_false(ky_name_valid(bad[i]));
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_false(ky_name_valid(name));
	name[KY_OBJECT_NAME_MAX] = '\0';
	assert_true(ky_name_valid(name));
}

static void test_near_distance(void **state)
{
	(void)state;
	assert_int_equal(ky_near_distance("vtdi", "vtid"), 1);
	assert_int_equal(ky_near_distance("enable-evnt", "enable-event"), 1);
	assert_int_equal(ky_near_distance("i", "ip"), 1);
	assert_int_equal(ky_near_distance("0", "ip"), UINT_MAX);
	assert_int_equal(ky_near_distance("page-fualt", "page-faults"), 2);
	assert_int_equal(ky_near_distance("stop", "start"), UINT_MAX);
}

static void test_edit_distance(void **state)
{
	char longest[KY_DISTANCE_MAX + 2];

	assert_int_equal(ky_edit_distance("", "", 9), 0);
	assert_int_equal(ky_edit_distance("kitten", "sitting", 9), 3);
	assert_int_equal(ky_edit_distance("abc", "", 9), 3);
	assert_int_equal(ky_edit_distance("", "abc", 9), 3);
	assert_int_equal(ky_edit_distance("abcdef", "uvwxyz", 2), 3);
	assert_int_equal(ky_edit_distance("order", "odrer", 9), 1);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(ky_edit_distance(longest, longest, 9), 10);
	longest[KY_DISTANCE_MAX] = '\0';
	assert_int_equal(ky_edit_distance(longest, longest, 9), 0);
}

static void scale(double ns, double limit, double wanted, const char *unit)
{
	assert_string_equal(ky_scale_ns(&ns, limit), unit);
	assert_true(ns == wanted);
}

static void test_scale(void **state)
{
	scale(999, 1000, 999, "ns");
	scale(1000, 1000, 1, "us");
	scale(999, 990, .999, "us");
	scale(-2500000, 1000, -2.5, "ms");
	scale(5e12, 1000, 5000, "s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_reals),
		cmocka_unit_test(test_decimal_points),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_edit_distance),
		cmocka_unit_test(test_near_distance),
		cmocka_unit_test(test_scale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
