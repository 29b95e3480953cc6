/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static bool is_valid(const char *text)
{
	return ky_utf8_valid(text, strlen(text));
}

static void test_valid(void **state)
{
	assert_true(is_valid(""));
	assert_true(is_valid("a\x1b \xc3\xbc \xf0\x9f\x98\x80"));
	assert_true(ky_utf8_valid("a\0b", 3));
	assert_false(is_valid("a\xff"));
	assert_false(is_valid("\xc3"));
	assert_false(is_valid("\xed\xa0\x80"));	    /* a surrogate */
	assert_false(is_valid("\xe0\x80\xaf"));	    /* an overlong form */
	assert_false(is_valid("\xf4\x90\x80\x80")); /* beyond the last character */
	assert_false(ky_utf8_valid("\xc3\xbc", 1));
}

static bool is_harmless(uint32_t code)
{
	char text[3];
	uint32_t found;
	bool harmless;
	size_t len = 0;

	if (code < 0x80) {
		text[len++] = (char)code;
	} else {
		text[len++] = (char)(code < 0x800 ? 0xc0 | code >> 6 : 0xe0 | code >> 12);
		if (code >= 0x800)
			text[len++] = (char)(0x80 | (code >> 6 & 0x3f));
		text[len++] = (char)(0x80 | (code & 0x3f));
	}
	assert_int_equal(ky_utf8_length(text, len, &found, &harmless), len);
	assert_int_equal(found, code);
	return harmless;
}

/* Control characters, and those that change the direction of a text or end a line. */
static void test_harmless(void **state)
{
	static const struct {
		uint32_t first, last;
	} harmful[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x61c, 0x61c}, {0x200e, 0x200f}, {0x2028, 0x202e},
		{0x2066, 0x2069}};

	for (uint32_t code = 0; code < 0xd800; code++) {
		bool is_harmful = false;

		for (size_t i = 0; i < KY_ARRAY_SIZE(harmful); i++)
			is_harmful |= code >= harmful[i].first && code <= harmful[i].last;
		assert_int_equal(is_harmless(code), !is_harmful);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
