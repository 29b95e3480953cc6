/* SPDX-License-Identifier: MIT */
/* Tests the short form of filters, which compares one or two numbers near the front of an event. */
#include "filter/test-fixture.h"

#include <inttypes.h>

static const struct kymo_field numbers[] = {
	{KYMO_FIELD_INT, 0, 1, 0, 0, "s", NULL},
	{KYMO_FIELD_UINT, 0, 1, 0, 0, "u", NULL},
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "between", NULL},
	{KYMO_FIELD_INT, 0, 1, 0, 0, "far", NULL},
	{0},
};

static const struct kymo_field wide[] = {
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "u", NULL},
	{KYMO_FIELD_INT, 0, 8, 0, 0, "s", NULL},
	{0},
};

static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};

static bool is_comparison_true(const char *op, int64_t a, int64_t b)
{
	switch (*op) {
	case '<':
		return op[1] ? a <= b : a < b;
	case '>':
		return op[1] ? a >= b : a > b;
	default:
		return (*op == '=') == (a == b);
	}
}

static const struct ky_filter_quick *quick_of_code(void)
{
	return &((const struct ky_filter_code *)(void *)code)->quick;
}

/*
 * Returns whether the payload passes. word: its first 8 bytes are also an event of one word. A
 * filter that nothing passes, or all, has no short form.
 */
static bool is_passed(const uint8_t *payload, size_t size, bool word)
{
	const struct ky_filter_quick *q = quick_of_code();
	uint64_t first;
	bool pass;

	if (q->end == UINT32_MAX)
		return ky_filter_pass(code, payload, size, NULL, 0);
	assert_true(q->end <= size);
	pass = ky_filter_quick_pass(q, payload);
	memcpy(&first, payload, sizeof(first));
	if (word) {
		assert_true(q->word_end <= sizeof(first));
		assert_int_equal(ky_filter_quick_pass_word(q, first), pass);
	}
	return pass;
}

static void link_text(const char *text, const struct kymo_field *of)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error error;
	int n = ky_filter_compile(text, find_context, program, &error);

	assert_true(n > 0);
	assert_true(ky_filter_link(program, (size_t)n, of, find_context, code, &error) > 0);
}

/* All values of a field of one byte, beside other bytes, against constants in and out of range. */
static void test_quick(void **state)
{
	static const int limits[] = {-129, -128, -127, -1, 0, 1, 5, 127, 128, 254, 255, 256};
	uint8_t payload[11];
	char text[64];

	for (size_t i = 0; i < KY_ARRAY_SIZE(ops) * KY_ARRAY_SIZE(limits); i++) {
		const char *op = ops[i / KY_ARRAY_SIZE(limits)];
		int limit = limits[i % KY_ARRAY_SIZE(limits)];

		for (int field = 0; field < 3; field++) {
			snprintf(text, sizeof(text), "%s %s %d",
				(const char *[]){"s", "u", "far"}[field], op, limit);
			link_text(text, numbers);
			for (int v = 0; v < 256; v++) {
				int value = field == 1 ? v : (int8_t)v;

				memset(payload, v % 2 ? 0xff : 0, sizeof(payload));
				payload[field == 2 ? 10 : field] = (uint8_t)v;
				assert_int_equal(is_passed(payload, sizeof(payload), field < 2),
					is_comparison_true(op, value, limit));
			}
		}
	}
}

/* Numbers of 64 bits, near the ends of their ranges. */
static void test_quick_wide(void **state)
{
	static const uint64_t ends[] = {
		0, 1, 2, 5, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX};
	uint64_t payload[2] = {0};
	unsigned n_long = 0;
	char text[64];

	for (size_t i = 0; i < KY_ARRAY_SIZE(ops) * KY_ARRAY_SIZE(ends) * 2; i++) {
		const char *op = ops[i / 2 % KY_ARRAY_SIZE(ops)];
		uint64_t limit = ends[i / 2 / KY_ARRAY_SIZE(ops)];
		/* In the order of signed numbers, where unsigned ones are this much lower. */
		uint64_t lower = i % 2 ? 0 : (uint64_t)INT64_MIN;

		if (i % 2)
			snprintf(text, sizeof(text), "s %s %" PRId64, op, (int64_t)limit);
		else
			snprintf(text, sizeof(text), "u %s %" PRIu64, op, limit);
		link_text(text, wide);
		n_long += quick_of_code()->end == UINT32_MAX;
		for (size_t k = 0; k < KY_ARRAY_SIZE(ends); k++) {
			payload[i % 2] = ends[k];
			assert_int_equal(
				is_passed((const uint8_t *)payload, sizeof(payload), !(i % 2)),
				is_comparison_true(
					op, (int64_t)(ends[k] - lower), (int64_t)(limit - lower)));
		}
	}
	assert_int_equal(n_long, 4); /* less than the least number, or not */
}

/* Two tests, on the same field and on different ones. */
static void test_quick_pairs(void **state)
{
	static const char *const joined[] = {"%s && %s", "%s || %s", "!(%s && %s)", "!(%s || %s)"};
	uint8_t payload[11];
	char text[64];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), joined[i % 4], "s > -3", i < 4 ? "s <= 3" : "u != 7");
		link_text(text, numbers);
		for (unsigned n = 0; n < 65536; n++) {
			bool a, b;

			memset(payload, (int)(n % 3), sizeof(payload));
			payload[0] = (uint8_t)n;
			payload[1] = (uint8_t)(n >> 8);
			a = (int8_t)payload[0] > -3;
			b = i < 4 ? (int8_t)payload[0] <= 3 : payload[1] != 7;
			assert_int_equal(is_passed(payload, sizeof(payload), true),
				(i % 2 ? a || b : a && b) != (i % 4 >= 2));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quick),
		cmocka_unit_test(test_quick_wide),
		cmocka_unit_test(test_quick_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
