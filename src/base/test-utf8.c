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

static bool is_harmless(const char *text)
{
	uint32_t code;
	bool harmless;

	assert_int_equal(ky_utf8_length(text, strlen(text), &code, &harmless), strlen(text));
	return harmless;
}

static void test_harmless(void **state)
{
	assert_true(is_harmless("a"));
	assert_true(is_harmless("\xe2\x82\xac"));
	assert_false(is_harmless("\n"));
	assert_false(is_harmless("\xc2\x9b"));	   /* begins a terminal's escape sequence */
	assert_false(is_harmless("\xe2\x80\xae")); /* right-to-left override */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
