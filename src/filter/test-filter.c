/* SPDX-License-Identifier: MIT */
/* Tests filters from text to result. */
#include "filter/test-fixture.h"

static const char *const true_ones[] = {
	/* each kind, both sides, each comparison */
	"a == -5",
	"-5 == a",
	"a < -4",
	"a <= -5",
	"a > -6",
	"a >= -5",
	"a != 5",
	"-4 > a",
	"-5 >= a",
	"-6 < a",
	"-5 <= a",
	"b == 200",
	"b > 199",
	"c == -300",
	"d == 60000",
	"e == -70000",
	"e < 0",
	"f == 4000000000",
	"f > 0x7fffffff",
	"g == -5000000000000",
	"h == 18446744073709551614",
	"h > 1",
	"h == -2",
	"h > -3",
	"-3 < h",
	"h >= -2",
	"!(h < 5)",
	"x == 1.5",
	"x > 1",
	"1 < x",
	"x*2 == 3",
	"y == -2.25",
	"y < 0",
	"-y > 2",
	"y != y + 1",
	"yes",
	"yes == 1",
	"!(!yes)",
	"state == -1",
	"state < 0",
	"port == 443",
	"net == -2",
	/* C's conversions */
	"f == 4000000000u",
	"f > -1",
	"b > -1",
	"a == -5u",
	"g < -1",
	"a + h == -7",
	"a + h == 18446744073709551609",
	"h / 2 == 0x7fffffffffffffff",
	"-1 < 0u == 0",
	"-1 / 2u == 0x7fffffffffffffff",
	"1 / 2 == 0",
	"1 / 2. == .5",
	"-7 / 2 == -3",
	"-7 % 3 == -1",
	"-1 >> 63 == -1",
	"(-1u) >> 63 == 1",
	"~0 == -1",
	"~b == -201",
	"g == -5000000000000.0",
	"a < 0.5",
	/* literals */
	"a == -0x5",
	"a == -05",
	"a == -0b101",
	"a == -0B101",
	"d == 0XEA60",
	"d == 0165140",
	"a == -5L",
	"a == -5ull",
	"y == -225e-2",
	"y == -22.5E-1",
	"0 == 00",
	"1. == 1",
	"0x10 == 16",
	"-9223372036854775808 < 0",
	"g > -9223372036854775808",
	"9223372036854775808 > 1",
	"-9223372036854775808 / -1 == -9223372036854775808",
	"-9223372036854775808 % -1 == 0",
	/* precedence */
	"1 + 2 * 3 == 7",
	"(1 + 2) * 3 == 9",
	"10 - 2 - 3 == 5",
	"2 * 3 % 4 == 2",
	"1 << 2 + 1 == 8",
	"1 | 2 ^ 3 & 1 == 3",

	"(6 & 3) == 2",
	"1 || 0 && 0",
	"!0 == 1",
	"!1 == 0",
	"-a == 5",
	"- -5 == 5",
	"~-a == ~5",
	"1 < 2 == 1",
	"3 > 2 > 0",
	"5 == 5 == 1",
	"!a == 0",
	"+a == -5",
	"!!a",
	"- ~ ! 0 + 1 == 3",
	"100 >> 2 << 1 == 50",
	/* logic */
	"a == -5 && b == 200",
	"a == 1 || b == 200",
	"!(a == 1 && b == 200)",
	"!(a == 1 || b == 1)",
	"!!(a == -5)",
	"(a == -5 && b == 1) || (c == -300 && d)",
	"a && b",
	"a",
	"x",
	"a + 6",
	"!(a + 5)",
	"(a == -5) == (b == 200)",
	"(a < b) + (b < d) == 2",
	"(a || b) + 1 == 2",
	"-(a && b) == -1",
	"a == 1 || b == 1 || c == 1 || d == 1 || e == -70000",
	/* not a number */
	"nan != nan",
	"!(nan == nan)",
	"!(nan < 1)",
	"!(nan >= 1)",
	"!(nan > 1)",
	"nan",
	"nan != 0",
	/* elements */
	"arr[0] == 1",
	"arr[1] == -2",
	"arr[2] > arr[0]",
	"arr[ 1 ] < 0",
	"seq[0] == 7",
	"seq[1] == -8",
	"fseq[0] == 0.5",
	"fseq[1] > 1e299",
	"blob[1] == 255",
	"txt[1] == 98",
	"ts[0] == 0x74",
	"arr [0x2] == 3",
	/* behind fields of variable size */
	"behind == -77",
	"last == 99",
	"last == 99 && behind == -77 && seq[1] == -8",
	"near == 12345",
	"wide == -2",
	"wide > 5",
	"!(wide < 5)",
	"wide <= -2",
	"arr[0] < 2",
	"arr[1] <= -2",
	"last - 22 == -behind",
	/* texts */
	"name == \"hello, world\"",
	"\"hello, world\" == name",
	"name != \"hello\"",
	"name == \"hello*\"",
	"name == \"*world\"",
	"name == \"*\"",
	"name == \"**\"",
	"name == \"h*o*d\"",
	"name == \"*o*o*\"",
	"name != \"*o*o*o*\"",
	"name == \"*lo, wo*\"",
	"name != \"hello\\*\"",
	"name != \"\"",
	"name != \"hello, world!\"",
	"name != \"hello, worl\"",
	"txt == \"ab\"",
	"txt == \"a*\"",
	"txt != \"abc\"",
	"ts == \"tail\"",
	"ts == \"t*l\"",
	"ts != \"tai\"",
	"ts != \"tails\"",
	"names[0] == \"one\"",
	"names[1] == \"\"",
	"names[2] == \"th*\"",
	"pair[0] == \"left\"",
	"pair[1] == \"right\"",
	"empty == \"\"",
	"empty == \"*\"",
	"empty != \"?\"",
	"empty == names[1]",
	"name == name",
	"pair[0] != pair[1]",
	"txt != name",
	"name == \"hello, wo*rld\"",
	/* contexts */
	"$ctx.vpid == -42",
	"$ctx.vpid < 0 && a < 0",
	"$ctx.procname == \"proc7\"",
	"$ctx.procname == \"p*\"",
	"$ctx.procname != name",
	"$ctx.procname == $ctx.procname",
	"  a==-5  ",
	"(((((a))))) == (-5)",
	"\ta\n==\n-5",
	/* an operand without a value makes a comparison neither true nor false */
	"seq[2] == 0 || a == -5",
	"a == -5 || seq[2] == 0",
	"!(a == 1 && seq[2] == 0)",
	"!(seq[2] == 0 && a == 1)",
	"a / (b - 200) == 1 || 1",
	"1 / 1",
	"a << 63",
	"a >> 63 == -1",
	"$app.shop:none == 1 || $ctx.$app.shop:none == 1 || a",
	"$app.shop:load == 0.75 && $app.shop:load < 1 && $app.shop:load",
	"$ctx.$app.shop:name == \"proc*\"",
};

static const char *const false_ones[] = {
	"6 & 3 == 3",
	"a == 5",
	"a > -5",
	"a >= -4",
	"a != -5",
	"-5 != a",
	"h > -1",
	"h < 5",
	"nan == nan",
	"nan < 1",
	"nan > 1",
	"nan <= nan",
	"!nan",
	"f == -294967296",
	"!yes",
	"1 == 2",
	"0",
	"0.0",
	"-0.0",
	"a + 5",
	"1 && 0",
	"0 || 0",
	"!1",
	"a == -5 && b == 1",
	"!(a == -5)",
	"seq[0] == 8",
	"name == \"hello\"",
	"name == \"hello\\*\"",
	"name == \"\"",
	"name == \"*x*\"",
	"name == \"ello*\"",
	"name == \"*worl\"",
	"name != \"*\"",
	"empty == \"?\"",
	"empty != \"\"",
	"names[1] != \"\"",
	"txt == \"a\"",
	"txt == \"ab\\n\"",
	"name == txt",
	"$ctx.vpid == 42",
	"$ctx.procname == \"proc\"",
	/* no value */
	"seq[2] == 0",
	"seq[2] != 0",
	"!(seq[2] == 0)",
	"seq[2]",
	"!seq[2]",
	"seq[4294967294] == 1",
	"a / (b - 200)",
	"!(a / (b - 200))",
	"1 / 0",
	"1 % 0",
	"!(1 / 0)",
	"1 << 64",
	"1 << -1",
	"1 >> 64",
	"(1 / 0) == (1 / 0)",
	"names[3] == \"*\"",
	"names[3] != \"x\"",
	"!(names[3] == names[0])",
	"fseq[2] < 1",
	"blob[3] == 0",
	"ts[4] == 0",
	"(seq[2] == 0) + 1",
	"(seq[2] == 0) == 0",
	"(seq[2] == 0) == 1",
	"((seq[2] == 0 || a == 1) == 0) || 0",
	"$app.shop:none == 1",
	"!($app.shop:none == 1)",
	"$app.shop:load == \"*\"",
	"$app.shop:name == 1",
	"$app.shop:name != 1",
};

static const char *const true_nested[] = {
	"pt.x == 10",
	"pt . n == 11",
	"pt.t == \"a*\"",
	"pt.t[1] == 98",
	"pt.v[1] == 10.0",
	"pts[0].x == 20 && pts[1].x == -21",
	"pts[ 1 ] . n == 4294967276",
	"pts[1].v[0] == .5",
	"pts[0x1].t == \"ab\"",
	"way[0].x == 30 && way[1].x == 31",
	"way[1].n == 32 && way[1].t == \"ab\" && way[1].t[0] == 97 && way[1].v[1] == 31.",
	"who.s == \"me\" && who.p.x == 40 && who.p.v[1] == 40.",
	"who.way[1].x == 41",
	"team[0].s == \"you\" && team[0].p.n == 51 && team[0].way[2].x == 52",
	"team[1].s == \"\" && team[1].p.x == 60",
	"team[1].p.t != \"b*\"",
	"end == 4711",
	"way[2].x == 0 || end == 4711",
};

/* No value, which differs from false. */
static const char *const false_nested[] = {
	"pt.x == 11",
	"way[2].x == 32",
	"way[2].x != 32",
	"way[4294967294].v[1] != 1.",
	"way[2].t == \"*\"",
	"way[2].t != \"*\"",
	"team[1].way[0].x != 60",
	"!(team[0].way[3].n == 0)",
};

static void test_nested(void **state)
{
	for (enum layout l = FLAT; l < N_LAYOUTS; l++) {
		struct record *r = record_new(l, &usual);

		for (size_t i = 0; i < KY_ARRAY_SIZE(true_nested); i++)
			if (!passes(true_nested[i], r))
				fail_msg("layout %d: '%s' is not true", l, true_nested[i]);
		for (size_t i = 0; i < KY_ARRAY_SIZE(false_nested); i++)
			if (passes(false_nested[i], r))
				fail_msg("layout %d: '%s' is true", l, false_nested[i]);
		record_free(r);
	}
}

static void test_verdicts(void **state)
{
	for (enum layout l = FLAT; l < N_LAYOUTS; l++) {
		struct record *r = record_new(l, &usual);

		for (size_t i = 0; i < KY_ARRAY_SIZE(true_ones); i++)
			if (!passes(true_ones[i], r))
				fail_msg("layout %d: '%s' is not true", l, true_ones[i]);
		for (size_t i = 0; i < KY_ARRAY_SIZE(false_ones); i++)
			if (passes(false_ones[i], r))
				fail_msg("layout %d: '%s' is true", l, false_ones[i]);
		record_free(r);
	}
}

static const struct {
	const char *text;
	unsigned position; /* 0: found when linking */
	const char *says;
} refused[] = {
	{"", 1, "is missing"},
	{"   ", 4, "is missing"},
	{"a = 5", 3, "unknown operator '=' at character 3 (did you mean '=='?)"},
	{"a == ", 6, "is missing"},
	{"a == && b", 6, "is missing before '&'"},
	{".vpid == 1", 1, "before '.' at character 1 (contexts are '$ctx.NAME', in single quotes)"},
	{"a b", 3, "an operator is missing before 'b'"},
	{"a and b", 3, "an operator is missing before 'a' at character 3 (did you mean '&&'?)"},
	{"a OR(b)", 3, "(did you mean '||'?)"},
	{"a order", 3, "an operator is missing before 'o' at character 3"},
	{"a. == 1", 4, "the name of a field is missing after '.' at character 4"},
	{"pts[0].5 == 1", 8, "the name of a field is missing after '.' at character 8"},
	{"pts[0]x == 1", 7, "an operator is missing before 'x'"},
	{"pts[a].x == 1", 5, "the number of an element"},
	{"arr[1][b] == 1", 8, "the number of an element"},
	{"arr[1][2 == 1", 10, "']' is missing"},
	{"a..b == 1", 3, "the name of a field is missing after '.' at character 3"},
	{"a ! b", 3, "an operator is missing before '!'"},
	{"(a", 1, "'(' without ')'"},
	{"a)", 2, "')' without '('"},
	{"()", 2, "is missing before ')'"},
	{"a == \"x", 6, "not closed"},
	{"a == 'x'", 6, "strings are written"},
	{"name == \"\\q\"", 10, "unknown escape '\\q'"},
	{"name == \"x\\", 9, "not closed"},
	{"a == 5x", 7, "'x' does not belong"},
	{"a == 1.2.3", 9, "'.' does not belong"},
	{"a == 09", 7, "'9' does not belong"},
	{"a == 0x", 8, "digits are missing"},
	{"a == 18446744073709551616", 6, "does not fit 64 bits"},
	{"a == \x01", 6, "unknown character"},
	{"a # 1", 3, "missing before '#'"},
	{"arr[-1] == 1", 5, "the number of an element"},
	{"arr[b] == 1", 5, "the number of an element"},
	{"arr[1 == 1", 7, "']' is missing"},
	{"arr[4294967295] == 1", 5, "no array has"},
	{"$foo == 1", 1, "$ctx.NAME"},
	{"$ctx. == 1", 1, "$ctx.NAME"},
	{"$ctx.nope == 1", 1, "there is no context 'nope' at character 1"},
	{"a == 1 && \"x\" == 5", 15, "a string cannot be compared with a number at character 15"},
	{"\"x\" < name", 5, "compared by == and !="},
	{"\"x\" == \"x\"", 5, "neither is a field"},
	{"a && \"x\"", 3, "neither true nor false"},
	{"\"x\"", 1, "neither true nor false"},
	{"\"x\" + 1", 5, "cannot be calculated with"},
	{"-\"x\"", 1, "cannot be calculated with"},
	{"1.5 % 2", 5, "only integers can"},
	{"~1.5", 1, "only integers can"},
	{"a << 1.", 3, "only integers can"},
	{"$ctx.procname + 1", 15, "(context 'procname') cannot be calculated with"},
	{"$app.shop:load % 2 == 1", 0, "only integers can"},
	{"nope == 1", 0, "there is no field 'nope'"},
	{"name == 1", 0, "a string (field 'name') cannot be compared with a number"},
	{"a == \"x\"", 0, "a number (field 'a') cannot be compared with a string"},
	{"name == a", 0, "a string (field 'name') cannot be compared with a number (field 'a')"},
	{"name < pair[0]", 0, "compared by == and !="},
	{"name", 0, "neither true nor false"},
	{"x % 2", 0, "only integers can"},
	{"x | 2", 0, "only integers can"},
	{"arr == 1", 0, "field 'arr' has elements"},
	{"blob == \"x\"", 0, "field 'blob' has elements"},
	{"arr[3] == 1", 0, "has no element 3"},
	{"pair[2] == \"x\"", 0, "has no element 2"},
	{"txt[8] == 1", 0, "has no element 8"},
	{"a[0] == 1", 0, "has no elements"},
	{"name[0] == 1", 0, "has no elements"},
	{"a.b == 1", 0, "field 'a' has no fields"},
	{"name.b == 1", 0, "field 'name' has no fields"},
	{"arr[1].b == 1", 0, "field 'arr' has no fields"},
	{"pt == 1", 0, "field 'pt' is of structures: name a field of one, as in pt.NAME"},
	{"pts[0] == 1", 0, "field 'pts' is of structures: name a field of one, as in pts[0].NAME"},
	{"arr[1][2] == 1", 0, "there is no field 'arr[1]'"},
	{"pts[0][1].x == 1", 0, "there is no field 'pts[0][1]'"},
	{"pts.x == 1", 0, "field 'pts' is of several structures: name one, as in pts[0]"},
	{"pt[0].x == 1", 0, "field 'pt' has no elements"},
	{"pts[2].x == 1", 0, "field 'pts' has no element 2: it has 2 of them"},
	{"pt.y == 1", 0, "field 'pt' has no field 'y'"},
	{"way[0].v == 1", 0, "field 'v' has elements"},
	{"way[0].v[2] == 1", 0, "field 'v' has no element 2"},
	{"who.p.q == 1", 0, "field 'p' has no field 'q'"},
	{"crowd[0].s == \"x\"", 0, "size is not fixed: filters cannot use its fields"},
	{"lost == 1", 0, "field 'crowd' is nested and its size not fixed"},
};

static void test_refused(void **state)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error error;

	for (size_t i = 0; i < KY_ARRAY_SIZE(refused); i++) {
		int n = ky_filter_compile(refused[i].text, find_context, program, &error);

		if ((n < 0) != (refused[i].position != 0) || error.position != refused[i].position)
			fail_msg("'%s': %d at %u: %s", refused[i].text, n, error.position,
				error.text);
		if (n >= 0)
			n = ky_filter_link(program, (size_t)n, fields, find_context, code, &error);
		if (n != (strstr(refused[i].says, "there is no field") ? -ENOENT : -EINVAL) ||
			!strstr(error.text, refused[i].says))
			fail_msg("'%s': %d: %s", refused[i].text, n, error.text);
	}
}

/* The text shows the position of each error. */
static void test_positions(void **state)
{
	static const struct {
		const char *text;
		unsigned position;
	} wrong[] = {
		{"nope == 1", 1},
		{"a == 1 && pt.y == 1", 14},
		{"a == 1 && who . p .  q == 1", 22},
		{"team[0x1].p.q == 1", 13},
		{"pt.x == 1 && pts[2].x == 1", 14},
		{"pt.x == 1 && name == 5", 19},
	};
	struct ky_filter_error error;

	for (size_t i = 0; i < KY_ARRAY_SIZE(wrong); i++) {
		assert_true(compile_and_link(wrong[i].text, &error) < 0);
		if (ky_filter_position(wrong[i].text, &error) != wrong[i].position)
			fail_msg("'%s': at %u: %s", wrong[i].text,
				ky_filter_position(wrong[i].text, &error), error.text);
	}
}

static char *repeat(char *to, const char *text, unsigned n)
{
	for (; n; n--)
		to = stpcpy(to, text);
	return to;
}

static void test_limits(void **state)
{
	static char text[3 * KY_FILTER_TEXT_MAX];
	struct ky_filter_error error;
	struct record *r = record_new(FLAT, &usual);

	strcpy(repeat(text, "a == 1 || ", 60), "a == -5");
	assert_true(passes(text, r));
	strcpy(repeat(text, "1+", 126), "a == 121");
	assert_true(passes(text, r));
	strcpy(repeat(text, "1+", 200), "a == 1");
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	assert_non_null(strstr(error.text, "more than 256"));
	strcpy(repeat(repeat(text, "(", 100), "a", 1), ")");
	repeat(text + 101, ")", 100);
	assert_true(passes(text, r));
	repeat(text, "(", 4000);
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nested too deeply at character 129"));
	repeat(repeat(repeat(text, "1-(", 31), "a", 1), ")", 31);
	assert_true(passes(text, r));
	repeat(repeat(repeat(text, "1-(", 40), "a", 1), ")", 40);
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nested more than 32 deep"));
	strcpy(repeat(text, "!", 60), "a");
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	/* Each level would double the code. */
	repeat(repeat(repeat(text, "(", 20), "seq[1]", 1), "==1)", 20);
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	assert_non_null(strstr(error.text, "too large"));
	repeat(repeat(repeat(text, "(", 20), "seq[1] && a", 1), ") == 1", 20);
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	assert_non_null(strstr(error.text, "too large"));
	memset(text, ' ', KY_FILTER_TEXT_MAX + 1);
	strcpy(text + KY_FILTER_TEXT_MAX - 1, "a");
	assert_true(passes(text, r));
	strcpy(text + KY_FILTER_TEXT_MAX, "a");
	assert_int_equal(compile_and_link(text, &error), -EINVAL);
	record_free(r);
}

/* A text counts up to a limit; a text that changes meanwhile is read as it is recorded. */
static void test_long_text(void **state)
{
	static char name[KY_FILTER_STRING_MAX + 2];
	static const struct kymo_field only[] = {{.kind = KYMO_FIELD_STRING, .name = "name"}, {0}};
	struct kymo_piece pieces[] = {
		{name, sizeof(name) - 1, KYMO_PIECE_TEXT}, {"", 1, KYMO_PIECE_SCRATCH}};
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error error;
	int n = ky_filter_compile("name == \"*x\"", find_context, program, &error);

	assert_true(ky_filter_link(program, (size_t)n, only, find_context, code, &error) > 0);
	memset(name, 'a', sizeof(name) - 1);
	name[KY_FILTER_STRING_MAX] = 'x';
	assert_false(ky_filter_pass(code, NULL, sizeof(name), pieces, 2));
	name[KY_FILTER_STRING_MAX - 1] = 'x';
	assert_true(ky_filter_pass(code, NULL, sizeof(name), pieces, 2));
	name[5] = '\0';
	assert_true(ky_filter_pass(code, NULL, sizeof(name), pieces, 2));
	n = ky_filter_compile("name == \"aaaaa#*\"", find_context, program, &error);
	assert_true(ky_filter_link(program, (size_t)n, only, find_context, code, &error) > 0);
	assert_true(ky_filter_pass(code, NULL, sizeof(name), pieces, 2));
	/* No NUL at the expected place: no value. */
	assert_false(ky_filter_pass(code, NULL, sizeof(name) - 1, pieces, 1));
}

/* A truncated payload lacks values; nothing beyond it is read. */
static void test_short(void **state)
{
	static const char *const texts[] = {"a == -5 || 0", "last >= 0", "name == \"*\"",
		"seq[1] != 3", "arr[2] == 3", "ts == \"*\"", "names[2] == \"*\"", "x > 0",
		"port == 443", "txt == \"*\"", "blob[2] == 3", "y < 0", "way[1].v[1] == 31.",
		"team[1].p.t == \"ab\"", "way[1].t == \"ab\"", "team[0].way[2].n == 53"};

	for (enum layout l = FLAT; l < N_LAYOUTS; l++) {
		struct record *r = record_new(l, &usual);

		for (size_t i = 0; i < KY_ARRAY_SIZE(texts); i++) {
			assert_true(passes(texts[i], r));
			for (size_t n = 0; n < r->n_pieces; n++)
				ky_filter_pass(code, NULL, r->len, r->pieces, n + 1);
			for (size_t n = 0; l == FLAT && n < r->len; n++) {
				void *cut = malloc(n + 1);

				memcpy((char *)cut + 1, r->flat, n);
				ky_filter_pass(code, (char *)cut + 1, n, NULL, 0);
				free(cut);
			}
		}
		assert_false(ky_filter_pass(code, NULL, 0, NULL, 0));
		record_free(r);
	}
}

/* Code of the same program and fields is the same bytes, and may be moved. */
static void test_code_moves(void **state)
{
	static uint64_t other[KY_FILTER_CODE_MAX / 8];
	const char *text = "last == 99 && name == \"*wor*\" && (a + 1) * 2 == -8";
	struct ky_filter_error error;
	struct record *r = record_new(PIECES, &usual);
	int n;

	memset(code, 0xaa, sizeof(code));
	n = compile_and_link(text, &error);
	assert_true(n > 0);
	memcpy(other, code, (size_t)n);
	memset(code, 0x55, sizeof(code));
	assert_true(ky_filter_pass(other, r->flat, r->len, r->pieces, r->n_pieces));
	assert_int_equal(compile_and_link(text, &error), n);
	assert_memory_equal(code, other, (size_t)n);
	record_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_code_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
