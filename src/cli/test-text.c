/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/text.h"

static void shows(uint64_t bytes, const char *text)
{
	char buf[32];

	assert_string_equal(cli_format_size(buf, sizeof(buf), bytes), text);
}

static void test_format_size(void **state)
{
	shows(0, "0 bytes");
	shows(1023, "1023 bytes");
	shows(1024, "1.0 KiB");
	shows(262144, "256.0 KiB");
	shows((1 << 20) - 1, "1.0 MiB");
	shows(UINT64_MAX, "16.0 EiB");
}

static void test_levels(void **state)
{
	int level;

	for (int i = 0; ky_loglevel_names[i]; i++) {
		assert_int_equal(cli_parse_loglevel(ky_loglevel_names[i], &level), 0);
		assert_int_equal(level, i);
		assert_string_equal(cli_loglevel_name(i), ky_loglevel_names[i]);
	}
	assert_int_equal(cli_parse_loglevel("kymo_warning", &level), 0);
	assert_int_equal(level, 4);
	assert_int_equal(cli_parse_loglevel("TRACE_DEBUG_line", &level), 0);
	assert_int_equal(level, 13);
	assert_int_equal(cli_parse_loglevel("14", &level), 0);
	assert_int_equal(level, 14);
	assert_int_equal(cli_parse_loglevel("15", &level), -EINVAL);
	assert_int_equal(cli_parse_loglevel("-1", &level), -EINVAL);
	assert_int_equal(cli_parse_loglevel("", &level), -EINVAL);
	assert_int_equal(cli_parse_loglevel("KYMO_", &level), -EINVAL);
	assert_int_equal(cli_parse_loglevel("WARN", &level), -EINVAL);
	assert_null(cli_loglevel_name(-1));
	assert_null(cli_loglevel_name(15));
}

static void test_nearest(void **state)
{
	static const char *const names[] = {
		"start", "stop", "status", "enable-event", "enable-channel", NULL};
	char long_name[200] = "";

	assert_string_equal(cli_nearest("strat", names), "start");
	assert_string_equal(cli_nearest("stp", names), "stop");
	assert_string_equal(cli_nearest("satus", names), "status");
	assert_string_equal(cli_nearest("enable-evnet", names), "enable-event");
	assert_string_equal(cli_nearest("enable_channel", names), "enable-channel");
	assert_null(cli_nearest("xyz", names));
	assert_null(cli_nearest("", names));
	memset(long_name, 's', sizeof(long_name) - 1);
	assert_null(cli_nearest(long_name, names));
}

static void escapes(const char *text, const char *safe)
{
	struct ky_buf b = {0};

	cli_escape(&b, text);
	assert_string_equal(b.data, safe);
	ky_buf_deinit(&b);
}

static void test_escape(void **state)
{
	escapes("plain \\text", "plain \\text");
	escapes("a\x1b[31mb\n\t\x7f", "a\\x1b[31mb\\x0a\\x09\\x7f");
	escapes("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	/* C1 controls, and what turns the direction of writing */
	escapes("\xc2\x9b"
		"31m",
		"\\xc2\\x9b31m");
	escapes("\xe2\x80\xae"
		"x",
		"\\xe2\\x80\\xaex");
	/* no UTF-8: stray, cut short, too long a form, surrogate, beyond the last character */
	escapes("\x80\xff", "\\x80\\xff");
	escapes("\xe2\x82", "\\xe2\\x82");
	escapes("\xc0\xaf", "\\xc0\\xaf");
	escapes("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	escapes("\xed\xa0\x80", "\\xed\\xa0\\x80");
	escapes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
}

static void escapes_json(const char *json, const char *safe)
{
	struct ky_buf b = {0};

	cli_escape_json(&b, json);
	assert_string_equal(b.data, safe);
	ky_buf_deinit(&b);
}

/* Only what a terminal would obey changes, and a parser reads the same text as before. */
static void test_escape_json(void **state)
{
	escapes_json("{\n\t\"a\": \"gr\xc3\xbc\xc3\x9f \\u001b\" }",
		"{\n\t\"a\": \"gr\xc3\xbc\xc3\x9f \\u001b\" }");
	escapes_json("\"\x7f\xc2\x9b"
		     "31m\xe2\x80\xae\"",
		"\"\\u007f\\u009b31m\\u202e\"");
	escapes_json("\"\x9b\xff\xe2\x82\"", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void test_log_text(void **state)
{
	assert_string_equal(cli_log_text("kymo: it is"), "it is");
	assert_string_equal(
		cli_log_text("kymo-sessiond: session 's': it is"), "session 's': it is");
	assert_string_equal(cli_log_text("kymo is: it"), "kymo is: it");
	assert_string_equal(cli_log_text("kymo:"), "kymo:");
	assert_string_equal(cli_log_text(""), "");
}

static void test_last_line(void **state)
{
	char one[] = "one", two[] = "one\ntwo\n\n", none[] = "\n\n", empty[] = "";
	char ssh[] = "known hosts.\r\nno route\r\n", progress[] = "10 %\r20 %";

	assert_string_equal(cli_last_line(one), "one");
	assert_string_equal(cli_last_line(two), "two");
	assert_string_equal(cli_last_line(ssh), "no route");
	assert_string_equal(cli_last_line(progress), "20 %");
	assert_string_equal(cli_last_line(none), "");
	assert_string_equal(cli_last_line(empty), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_format_size),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_escape_json),
		cmocka_unit_test(test_log_text),
		cmocka_unit_test(test_last_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
