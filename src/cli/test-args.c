/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/args.h"

static const struct cli_option table[] = {
	{"session", 's', "SESSION", ""},
	{"exclude", 'x', "+PATTERN", ""},
	{"vpid", 0, "+-PID", ""},
	{"all", 'a', NULL, ""},
	{"sample", 0, "[=HZ]", ""},
	{"fields", 0, "NAME,...", ""},
	{"userspace", 'u', NULL, ""},
	{0},
};

static int parse_args(struct cli_args *a, enum cli_parse_mode mode, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	return cli_args_parse(a, table, mode, argc, argv);
}

#define LINE(...) ((char *[]){__VA_ARGS__, NULL})

static void test_forms(void **state)
{
	struct cli_args a;

	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED,
				 LINE("-ua", "one", "-sx", "--exclude=a=b", "two", "-x", "-c")),
		0);
	assert_true(cli_args_has(&a, "all"));
	assert_true(cli_args_has(&a, "userspace"));
	assert_false(cli_args_has(&a, "json"));
	assert_string_equal(cli_args_get(&a, "session"), "x");
	assert_int_equal(a.n_pos, 2);
	assert_string_equal(a.pos[1], "two");
	assert_null(a.pos[2]);
	cli_args_deinit(&a);
	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("-us=x", "-x", "=y")), 0);
	assert_string_equal(cli_args_get(&a, "session"), "x");
	assert_string_equal(cli_args_get(&a, "exclude"), "=y");
	cli_args_deinit(&a);
	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("--tracepoint", "--all-events")), 0);
	assert_true(cli_args_has(&a, "all"));
	assert_false(cli_args_has(&a, "userspace")); /* LTTng takes it beside --kernel, too */
	cli_args_deinit(&a);
}

static void test_repeated(void **state)
{
	struct cli_args a;
	size_t iter = 0;

	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED,
				 LINE("-x", "a", "--exclude", "b", "-s", "c", "-xd")),
		0);
	assert_string_equal(cli_args_next(&a, "exclude", &iter), "a");
	assert_string_equal(cli_args_next(&a, "exclude", &iter), "b");
	assert_string_equal(cli_args_next(&a, "exclude", &iter), "d");
	assert_null(cli_args_next(&a, "exclude", &iter));
	assert_string_equal(cli_args_get(&a, "exclude"), "d");
	cli_args_deinit(&a);
	/* LTTng has "--vpid --all" and "--all --vpid" */
	iter = 0;
	assert_int_equal(
		parse_args(&a, CLI_PARSE_MIXED, LINE("--vpid", "--all", "--vpid", "3", "--vpid")),
		0);
	assert_true(cli_args_has(&a, "all"));
	assert_string_equal(cli_args_next(&a, "vpid", &iter), "");
	assert_string_equal(cli_args_next(&a, "vpid", &iter), "3");
	assert_string_equal(cli_args_next(&a, "vpid", &iter), "");
	assert_null(cli_args_next(&a, "vpid", &iter));
	cli_args_deinit(&a);
	/* harmless */
	assert_int_equal(
		parse_args(&a, CLI_PARSE_MIXED,
			LINE("-a", "--session=c", "--sample=9", "-aa", "-s", "c", "--sample")),
		0);
	assert_string_equal(cli_args_get(&a, "session"), "c");
	assert_string_equal(cli_args_get(&a, "sample"), "9");
	cli_args_deinit(&a);
	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("--sample", "--sample=9")), 0);
	assert_string_equal(cli_args_get(&a, "sample"), "9");
	cli_args_deinit(&a);
}

static void test_ends(void **state)
{
	struct cli_args a;

	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("-a", "--", "-u", "--all")), 0);
	assert_int_equal(a.n_pos, 2);
	assert_false(cli_args_has(&a, "userspace"));
	cli_args_deinit(&a);
	assert_int_equal(parse_args(&a, CLI_PARSE_UNTIL_ARG, LINE("-a", "ls", "-u", "--", "x")), 0);
	assert_int_equal(a.n_pos, 4);
	assert_string_equal(a.pos[2], "--");
	cli_args_deinit(&a);
	assert_int_equal(parse_args(&a, CLI_PARSE_UNTIL_ARG, LINE("--", "--json", "--")), 0);
	assert_int_equal(a.n_pos, 2);
	assert_false(cli_args_has(&a, "json"));
	cli_args_deinit(&a);
	/* a lone dash is an argument */
	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("-")), 0);
	assert_int_equal(a.n_pos, 1);
	cli_args_deinit(&a);
}

static void expect_refused(int error, const char *why, char **argv)
{
	struct cli_args a;

	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, argv), error);
	assert_string_equal(a.why, why);
	cli_args_deinit(&a);
}

static void test_refused(void **state)
{
	expect_refused(-EINVAL, "unknown option '--sesion': did you mean '--session'?",
		LINE("--sesion=x"));
	expect_refused(-EINVAL, "unknown option '--qqqqqq'", LINE("--qqqqqq"));
	expect_refused(-EINVAL, "unknown option '--histogram'", LINE("--histogram"));
	expect_refused(-EINVAL, "unknown option '-y'", LINE("-ay"));
	expect_refused(-EOPNOTSUPP,
		"option '-q' (--quiet) is not supported: it is for kymo itself: write it before the command",
		LINE("-aq"));
	expect_refused(-EINVAL, "option '--all' takes no argument", LINE("--all=1"));
	expect_refused(-EINVAL, "option '--session' needs an argument: SESSION", LINE("-as"));
	expect_refused(-EINVAL, "option '--exclude' needs an argument: PATTERN", LINE("--exclude"));
	expect_refused(-EINVAL, "option '--exclude' needs an argument: PATTERN",
		LINE("--exclude", "--all"));
	expect_refused(-EINVAL, "option '--exclude' needs an argument: PATTERN",
		LINE("-x", "--session=a", "b"));
	expect_refused(-EINVAL, "option '--session' can be given once only: 'a' or 'b'?",
		LINE("-s", "a", "x", "--session=b"));
	expect_refused(-EINVAL, "option '--session' can be given once only: 'a' or 'b'?",
		LINE("-sa", "--session", "a", "-s", "b"));
	expect_refused(-EINVAL, "option '--session' has an empty argument", LINE("-s", ""));
	expect_refused(-EINVAL, "option '--session' has an empty argument", LINE("--session="));
	expect_refused(-EINVAL, "option '--sample' has an empty argument", LINE("--sample="));
	expect_refused(-EINVAL, "option '--fields' can be given once only: write 'a,b'",
		LINE("--fields=a", "--fields", "b"));
	expect_refused(-EOPNOTSUPP,
		"option '-k' (--kernel) is not supported: this command is not about the kernel",
		LINE("-k"));
	expect_refused(-EOPNOTSUPP,
		"option '--set-url' is not supported: it belongs to 'kymo create'; 'kymo ship' sends a trace that is there",
		LINE("--set-url=net://host"));
}

static void test_common(void **state)
{
	struct cli_args a;

	assert_int_equal(parse_args(&a, CLI_PARSE_MIXED, LINE("x", "--json", "-h")), 0);
	assert_true(cli_args_has(&a, "json"));
	assert_true(cli_args_has(&a, "help"));
	cli_args_deinit(&a);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_common),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
