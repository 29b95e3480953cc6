/* SPDX-License-Identifier: MIT */
/*
 * Tests filters from text to result, over one event with a field of each kind, flat and in pieces.
 * Each piece is memory of its own, so that the address sanitizer detects a read beyond it.
 */
#include "filter/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct kymo_enum_type state_type = {"state", NULL, 0, 1};

static const struct kymo_field point[] = {
	{KYMO_FIELD_INT, 0, 2, 0, 0, "x", NULL},
	{KYMO_FIELD_UINT, 0, 4, KYMO_FIELD_NETWORK, 0, "n", NULL},
	{KYMO_FIELD_TEXT, 0, 1, 0, 4, "t", NULL},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_FLOAT, 4, 0, 2, "v", NULL},
	{0},
};
static const struct kymo_field named[] = {
	{KYMO_FIELD_STRING, 0, 0, 0, 0, "s", NULL},
	{KYMO_FIELD_STRUCT, 0, 0, 0, 0, "p", point},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRUCT, 0, 0, 0, "way", point},
	{0},
};

static const struct kymo_field fields[] = {
	{KYMO_FIELD_INT, 0, 1, 0, 0, "a", NULL},
	{KYMO_FIELD_UINT, 0, 1, 0, 0, "b", NULL},
	{KYMO_FIELD_INT, 0, 2, 0, 0, "c", NULL},
	{KYMO_FIELD_UINT, 0, 2, 0, 0, "d", NULL},
	{KYMO_FIELD_INT, 0, 4, 0, 0, "e", NULL},
	{KYMO_FIELD_UINT, 0, 4, KYMO_FIELD_HEX, 0, "f", NULL},
	{KYMO_FIELD_INT, 0, 8, 0, 0, "g", NULL},
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "h", NULL},
	{KYMO_FIELD_FLOAT, 0, 4, 0, 0, "x", NULL},
	{KYMO_FIELD_FLOAT, 0, 8, 0, 0, "y", NULL},
	{KYMO_FIELD_FLOAT, 0, 8, 0, 0, "nan", NULL},
	{KYMO_FIELD_BOOL, 0, 1, 0, 0, "yes", NULL},
	{KYMO_FIELD_ENUM, 0, 4, 0, 0, "state", &state_type},
	{KYMO_FIELD_UINT, 0, 2, KYMO_FIELD_NETWORK, 0, "port", NULL},
	{KYMO_FIELD_INT, 0, 4, KYMO_FIELD_NETWORK, 0, "net", NULL},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_INT, 4, 0, 3, "arr", NULL},
	{KYMO_FIELD_TEXT, 0, 1, 0, 8, "txt", NULL},
	{KYMO_FIELD_UINT, 0, 4, 0, 0, "near", NULL},
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "wide", NULL},
	{KYMO_FIELD_STRING, 0, 0, 0, 0, "name", NULL},
	{KYMO_FIELD_INT, 0, 2, 0, 0, "behind", NULL},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_INT, 2, 0, 0, "seq", NULL},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_FLOAT, 8, 0, 0, "fseq", NULL},
	{KYMO_FIELD_TEXT_SEQUENCE, 0, 1, 0, 0, "ts", NULL},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRING, 0, 0, 0, "names", NULL},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_STRING, 0, 0, 2, "pair", NULL},
	{KYMO_FIELD_BLOB, 0, 1, 0, 0, "blob", NULL},
	{KYMO_FIELD_STRING, 0, 0, 0, 0, "empty", NULL},
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "last", NULL},
	{KYMO_FIELD_STRUCT, 0, 0, 0, 0, "pt", point},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_STRUCT, 0, 0, 2, "pts", point},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRUCT, 0, 0, 0, "way", point},
	{KYMO_FIELD_STRUCT, 0, 0, 0, 0, "who", named},
	{KYMO_FIELD_ARRAY, KYMO_FIELD_STRUCT, 0, 0, 2, "team", named},
	{KYMO_FIELD_UINT, 0, 4, 0, 0, "end", NULL},
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRUCT, 0, 0, 0, "crowd", named},
	{KYMO_FIELD_UINT, 0, 4, 0, 0, "lost", NULL},
	{0},
};

/* --- the record --- */

enum layout { FLAT, PIECES, N_LAYOUTS };

struct record {
	enum layout layout;
	uint8_t scratch[4096];
	size_t len, begin; /* of the data that is not in a piece yet */
	struct kymo_piece pieces[64];
	size_t n_pieces;
	void *flat;
};

static void add_piece(struct record *r, const void *p, size_t n, uint32_t flags)
{
	void *copy = malloc(n);

	assert_non_null(copy);
	memcpy(copy, p, n);
	r->pieces[r->n_pieces++] = (struct kymo_piece){copy, (uint32_t)n, flags};
}

static void close_scratch(struct record *r)
{
	if (r->len > r->begin)
		add_piece(r, r->scratch + r->begin, r->len - r->begin, KYMO_PIECE_SCRATCH);
	r->begin = r->len;
}

static void put(struct record *r, const void *p, size_t n)
{
	memcpy(r->scratch + r->len, p, n);
	r->len += n;
}

/* Puts data that is a piece of its own if there are pieces. */
static void put_data(struct record *r, const void *p, size_t n, uint32_t flags)
{
	if (r->layout == FLAT || !n) {
		put(r, p, n);
		return;
	}
	close_scratch(r);
	add_piece(r, p, n, flags);
}

static void put_string(struct record *r, const char *s)
{
	put_data(r, s, strlen(s), KYMO_PIECE_TEXT);
	put(r, "", 1);
}

static void put_count(struct record *r, uint32_t n)
{
	put(r, &n, sizeof(n));
}

#define PUT(r, type, value)                                                                        \
	do {                                                                                       \
		type put_value = (value);                                                          \
		put(r, &put_value, sizeof(put_value));                                             \
	} while (0)

struct values {
	int8_t a;
	uint8_t b;
	int16_t c;
	uint16_t d;
	int32_t e;
	uint32_t f;
	int64_t g;
	uint64_t h;
	double y;
	int16_t behind;
	int16_t seq[2];
	uint64_t last;
	const char *name;
};

static const struct values usual = {-5, 200, -300, 60000, -70000, 4000000000u, -5000000000000,
	UINT64_MAX - 1, -2.25, -77, {7, -8}, 99, "hello, world"};

static void put_point(struct record *r, int16_t x)
{
	PUT(r, int16_t, x);
	PUT(r, uint32_t, __builtin_bswap32((uint32_t)x + 1));
	put_data(r, "ab\0\0", 4, 0);
	PUT(r, float, 0.5f);
	PUT(r, float, (float)x);
}

/* Puts n points, of which the i-th has x + i. */
static void put_way(struct record *r, uint32_t n, int16_t x)
{
	put_count(r, n);
	for (uint32_t i = 0; i < n; i++)
		put_point(r, (int16_t)(x + (int)i));
}

static void put_named(struct record *r, const char *s, int16_t x)
{
	put_string(r, s);
	put_point(r, x);
	put_way(r, (uint32_t)strlen(s), x);
}

static struct record *record_new(enum layout layout, const struct values *v)
{
	static const int32_t arr[] = {1, -2, 3};
	static const double fseq[] = {0.5, 1e300};
	struct record *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->layout = layout;
	put(r, &v->a, 1);
	put(r, &v->b, 1);
	put(r, &v->c, 2);
	put(r, &v->d, 2);
	put(r, &v->e, 4);
	put(r, &v->f, 4);
	put(r, &v->g, 8);
	put(r, &v->h, 8);
	PUT(r, float, 1.5f);
	put(r, &v->y, 8);
	PUT(r, double, __builtin_nan(""));
	PUT(r, uint8_t, 1);
	PUT(r, int32_t, -1);
	put(r, "\x01\xbb", 2);
	put(r, "\xff\xff\xff\xfe", 4);
	put_data(r, arr, sizeof(arr), 0);
	put(r, "ab\0\0\0\0\0\0", 8);
	PUT(r, uint32_t, 12345);
	PUT(r, uint64_t, UINT64_MAX - 1);
	put_string(r, v->name);
	put(r, &v->behind, 2);
	put_count(r, 2);
	put_data(r, v->seq, 4, 0);
	put_count(r, 2);
	put_data(r, fseq, sizeof(fseq), 0);
	put_count(r, 4);
	put_data(r, "tail", 4, 0);
	put_count(r, 3);
	put_string(r, "one");
	put_string(r, "");
	put_string(r, "three");
	put_string(r, "left");
	put_string(r, "right");
	put_count(r, 3);
	put_data(r, "\x01\xff\x03", 3, 0);
	put_string(r, "");
	put(r, &v->last, 8);
	put_point(r, 10);
	put_point(r, 20);
	put_point(r, -21);
	put_way(r, 2, 30);
	put_named(r, "me", 40);
	put_named(r, "you", 50);
	put_named(r, "", 60);
	PUT(r, uint32_t, 4711);
	put_count(r, 1);
	put_named(r, "x", 70);
	PUT(r, uint32_t, 1);
	if (layout == FLAT) {
		r->flat = malloc(r->len);
		assert_non_null(r->flat);
		memcpy(r->flat, r->scratch, r->len);
	} else {
		close_scratch(r);
	}
	return r;
}

static void record_free(struct record *r)
{
	for (size_t i = 0; i < r->n_pieces; i++)
		free((void *)r->pieces[i].ptr);
	free(r->flat);
	free(r);
}

/* --- contexts --- */

static bool get_vpid(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	*ret_bits = (uint64_t) - (int64_t) * (const int *)argument;
	return true;
}

/* Returns a number if one is requested. */
static bool get_load(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	const double load = 0.75;

	assert_int_equal(type, KY_FILTER_FLOAT);
	memcpy(ret_bits, &load, sizeof(load));
	return true;
}

static bool get_nothing(const void *argument, enum ky_filter_type type, uint64_t *ret_bits)
{
	return false;
}

static int get_procname(const void *argument, char *buf, size_t size)
{
	return snprintf(buf, size, "proc%d", *(const int *)argument);
}

static int get_no_string(const void *argument, char *buf, size_t size)
{
	return -1;
}

static bool find_context(const char *name, struct ky_filter_context *ret)
{
	static const int seven = 7, number = 42;
	static const struct {
		const char *name;
		struct ky_filter_context context;
	} contexts[] = {
		{"vpid", {KY_FILTER_SIGNED, &number, get_vpid, NULL}},
		{"$app.shop:none", {KY_FILTER_UNSIGNED, NULL, get_nothing, NULL}},
		{"$app.shop:load", {KY_FILTER_ANY, NULL, get_load, get_no_string}},
		{"$app.shop:name", {KY_FILTER_ANY, &seven, get_nothing, get_procname}},
		{"procname", {KY_FILTER_STRING, &seven, NULL, get_procname}},
	};

	for (size_t i = 0; i < KY_ARRAY_SIZE(contexts); i++) {
		if (strcmp(contexts[i].name, name))
			continue;
		*ret = contexts[i].context;
		return true;
	}
	return false;
}

/* --- tests --- */

static uint64_t code[KY_FILTER_CODE_MAX / 8];

static int compile_and_link(const char *text, struct ky_filter_error *error)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	int n = ky_filter_compile(text, find_context, program, error);

	return n < 0 ? n : ky_filter_link(program, (size_t)n, fields, find_context, code, error);
}

static bool passes(const char *text, const struct record *r)
{
	struct ky_filter_error error;
	int n = compile_and_link(text, &error);

	if (n < 0)
		fail_msg("%s: %d, %s", text, n, error.text);
	return ky_filter_pass(code, r->flat, r->len, r->pieces, r->n_pieces);
}

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
	{"a b", 3, "an operator is missing before 'b'"},
	{"a. == 1", 4, "a field's name is missing behind '.' at character 4"},
	{"pts[0].5 == 1", 8, "a field's name is missing behind '.' at character 8"},
	{"pts[0]x == 1", 7, "an operator is missing before 'x'"},
	{"pts[a].x == 1", 5, "an element's number"},
	{"a..b == 1", 3, "a field's name is missing behind '.' at character 3"},
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
	{"arr[-1] == 1", 5, "an element's number"},
	{"arr[b] == 1", 5, "an element's number"},
	{"arr[1 == 1", 7, "']' is missing"},
	{"arr[4294967295] == 1", 5, "no array has"},
	{"$foo == 1", 1, "$ctx.NAME"},
	{"$ctx. == 1", 1, "$ctx.NAME"},
	{"$ctx.nope == 1", 1, "there is no context 'nope' at character 1"},
	{"a == 1 && \"x\" == 5", 15, "a string cannot be compared with a number at character 15"},
	{"\"x\" < name", 5, "== and != only"},
	{"\"x\" == \"x\"", 5, "neither is a field"},
	{"a && \"x\"", 3, "neither true nor false"},
	{"\"x\"", 1, "neither true nor false"},
	{"\"x\" + 1", 5, "cannot be calculated with"},
	{"-\"x\"", 1, "cannot be calculated with"},
	{"1.5 % 2", 5, "integers only"},
	{"~1.5", 1, "integers only"},
	{"a << 1.", 3, "integers only"},
	{"$ctx.procname + 1", 15, "(context 'procname') cannot be calculated with"},
	{"$app.shop:load % 2 == 1", 0, "integers only"},
	{"nope == 1", 0, "there is no field 'nope'"},
	{"name == 1", 0, "a string (field 'name') cannot be compared with a number"},
	{"a == \"x\"", 0, "a number (field 'a') cannot be compared with a string"},
	{"name == a", 0, "a string (field 'name') cannot be compared with a number (field 'a')"},
	{"name < pair[0]", 0, "== and != only"},
	{"name", 0, "neither true nor false"},
	{"x % 2", 0, "integers only"},
	{"x | 2", 0, "integers only"},
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
	{"pts.x == 1", 0, "field 'pts' is of several structures: name one, as in pts[0]"},
	{"pt[0].x == 1", 0, "field 'pt' has no elements"},
	{"pts[2].x == 1", 0, "field 'pts' has no element 2: it has 2 of them"},
	{"pt.y == 1", 0, "field 'pt' has no field 'y'"},
	{"way[0].v == 1", 0, "field 'v' has elements"},
	{"way[0].v[2] == 1", 0, "field 'v' has no element 2"},
	{"who.p.q == 1", 0, "field 'p' has no field 'q'"},
	{"crowd[0].s == \"x\"", 0, "size is not fixed: filters cannot look into these"},
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

/* Patterns against a simple matcher. */
static bool slow_match(const char *p, const char *t)
{
	if (*p == '*')
		return slow_match(p + 1, t) || (*t && slow_match(p, t + 1));
	return *p ? *p == *t && slow_match(p + 1, t + 1) : !*t;
}

static uint64_t random_state = 1;

static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void draw_text(char *to, const char *alphabet, unsigned max)
{
	unsigned n = (unsigned)(draw() % (max + 1));

	for (unsigned i = 0; i < n; i++)
		to[i] = alphabet[draw() % strlen(alphabet)];
	to[n] = '\0';
}

static void test_patterns(void **state)
{
	for (unsigned i = 0; i < 20000; i++) {
		struct values v = usual;
		char name[16], pattern[12], text[32];
		struct record *r;

		draw_text(name, "ab", 14);
		draw_text(pattern, "aabb*", 9);
		snprintf(text, sizeof(text), "name == \"%s\"", pattern);
		v.name = name;
		r = record_new(i % 2 ? PIECES : FLAT, &v);
		if (passes(text, r) != slow_match(pattern, name))
			fail_msg("'%s' on '%s'", text, name);
		record_free(r);
	}
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

/* --- random expressions, against a direct evaluation --- */

struct value {
	enum ky_filter_type type;
	bool known;
	union {
		int64_t s;
		uint64_t u;
		double f;
	};
};

struct writer {
	char text[8192];
	size_t n;
	unsigned n_nodes;
	const struct values *v;
};

static void say(struct writer *w, const char *fmt, ...) KY_PRINTF(2, 3);

static void say(struct writer *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	w->n += (size_t)vsnprintf(w->text + w->n, sizeof(w->text) - w->n, fmt, ap);
	va_end(ap);
	assert_true(w->n < sizeof(w->text));
}

static struct value integer(int64_t s)
{
	return (struct value){KY_FILTER_SIGNED, true, {.s = s}};
}

static struct value natural(uint64_t u)
{
	return (struct value){KY_FILTER_UNSIGNED, true, {.u = u}};
}

static struct value real(double f)
{
	return (struct value){KY_FILTER_FLOAT, true, {.f = f}};
}

static double to_double(struct value v)
{
	return v.type == KY_FILTER_FLOAT    ? v.f
	       : v.type == KY_FILTER_SIGNED ? (double)v.s
					    : (double)v.u;
}

static struct value draw_leaf(struct writer *w)
{
	static const int64_t special[] = {
		0, 1, 2, -1, 63, 64, 127, 200, -300, INT32_MAX, INT64_MAX};
	int64_t k = special[draw() % KY_ARRAY_SIZE(special)];

	switch (draw() % 15) {
	case 0:
		say(w, "a");
		return integer(w->v->a);
	case 1:
		say(w, "b");
		return integer(w->v->b);
	case 2:
		say(w, "c");
		return integer(w->v->c);
	case 3:
		say(w, "d");
		return integer(w->v->d);
	case 4:
		say(w, "e");
		return integer(w->v->e);
	case 5:
		say(w, "f");
		return integer(w->v->f);
	case 6:
		say(w, "g");
		return integer(w->v->g);
	case 7:
		say(w, "h");
		return natural(w->v->h);
	case 8:
		say(w, "y");
		return real(w->v->y);
	case 9:
		say(w, "behind");
		return integer(w->v->behind);
	case 10:
		say(w, "seq[1]");
		return integer(w->v->seq[1]);
	case 11:
		say(w, "seq[2]");
		return (struct value){KY_FILTER_SIGNED, false, {0}};
	case 12:
		say(w, "last");
		return natural(w->v->last);
	case 13:
		say(w, "%lluu", (unsigned long long)k);
		return natural((uint64_t)k);
	default:
		say(w, k < 0 ? "(%lld)" : "%lld", (long long)k);
		return integer(k);
	}
}

static struct value truth(int t)
{
	return (struct value){KY_FILTER_SIGNED, t >= 0, {.s = t > 0}};
}

/* 1, 0, or -1: unknown */
static int is_true(struct value v)
{
	return !v.known ? -1 : v.type == KY_FILTER_FLOAT ? v.f != 0 : v.u != 0;
}

static struct value compare(const char *op, struct value l, struct value r)
{
	enum ky_filter_type type = KY_MAX(l.type, r.type);
	double fl = to_double(l), fr = to_double(r);
	bool less, equal, greater;

	if (!l.known || !r.known)
		return truth(-1);
	if (type == KY_FILTER_FLOAT) {
		less = fl<fr, equal = fl == fr, greater = fl> fr;
	} else if (type == KY_FILTER_UNSIGNED) {
		less = l.u<r.u, equal = l.u == r.u, greater = l.u> r.u;
	} else {
		less = l.s<r.s, equal = l.s == r.s, greater = l.s> r.s;
	}
	if (op[0] == '=')
		return truth(equal);
	if (op[0] == '!')
		return truth(!equal);
	return truth((op[0] == '<' ? less : greater) || (op[1] == '=' && equal));
}

static struct value calculate(const char *op, struct value l, struct value r)
{
	enum ky_filter_type type = KY_MAX(l.type, r.type);
	struct value v = {.type = type, .known = l.known && r.known};
	__int128 wide;

	if (type == KY_FILTER_FLOAT) {
		double a = to_double(l), b = to_double(r);

		v.f = *op == '+' ? a + b : *op == '-' ? a - b : *op == '*' ? a * b : a / b;
		return v;
	}
	if (*op == '<' || *op == '>') {
		v.type = l.type;
		v.known = v.known && r.u < 64;
		wide = l.type == KY_FILTER_SIGNED ? (__int128)l.s : (__int128)l.u;
		v.u = (uint64_t)(*op == '<' ? (__int128)((unsigned __int128)wide << (r.u & 63))
					    : wide >> (r.u & 63));
		return v;
	}
	if (*op == '/' || *op == '%') {
		bool is_signed = type == KY_FILTER_SIGNED;
		__int128 a = is_signed ? (__int128)l.s : (__int128)l.u,
			 b = is_signed ? (__int128)r.s : (__int128)r.u;

		v.known = v.known && b;
		v.u = b ? (uint64_t)(*op == '/' ? a / b : a % b) : 0;
		return v;
	}
	v.u = *op == '+'   ? l.u + r.u
	      : *op == '-' ? l.u - r.u
	      : *op == '*' ? l.u * r.u
	      : *op == '&' ? (l.u & r.u)
	      : *op == '|' ? (l.u | r.u)
			   : (l.u ^ r.u);
	return v;
}

static struct value logic(bool and, struct value l, struct value r)
{
	int a = is_true(l), b = is_true(r);

	if (and)
		return truth(!a || !b ? 0 : a < 0 || b < 0 ? -1 : 1);
	return truth(a == 1 || b == 1 ? 1 : a < 0 || b < 0 ? -1 : 0);
}

static struct value draw_expression(struct writer *w, unsigned depth);

/* Of these operators, floats have the first four. */
static struct value draw_arithmetic(struct writer *w, unsigned depth)
{
	static const char *const ops[] = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"};
	size_t begin;
	struct value l, r;
	const char *op;
	char right[sizeof(w->text)];

	say(w, "(");
	l = draw_expression(w, depth - 1);
	begin = w->n;
	r = draw_expression(w, depth - 1);
	op = ops[draw() % (l.type == KY_FILTER_FLOAT || r.type == KY_FILTER_FLOAT ? 4 : 10)];
	strcpy(right, w->text + begin);
	w->n = begin;
	say(w, " %s %s)", op, right);
	return calculate(op, l, r);
}

static struct value draw_unary(struct writer *w, unsigned depth)
{
	struct value v;

	if (draw() % 2) {
		say(w, "!(");
		v = draw_expression(w, depth - 1);
		say(w, ")");
		return truth(is_true(v) < 0 ? -1 : !is_true(v));
	}
	say(w, "-(");
	v = draw_expression(w, depth - 1);
	say(w, ")");
	if (v.type == KY_FILTER_FLOAT)
		v.f = -v.f;
	else
		v.u = -v.u;
	return v;
}

static struct value draw_expression(struct writer *w, unsigned depth)
{
	static const char *const comparisons[] = {"==", "!=", "<", "<=", ">", ">="};
	const char *op = comparisons[draw() % KY_ARRAY_SIZE(comparisons)];
	bool and = draw() % 2;
	struct value l, r;

	switch (depth ? draw() % 8 : 0) {
	case 0:
		return draw_leaf(w);
	case 1:
		return draw_unary(w, depth);
	case 2:
	case 3:
		return draw_arithmetic(w, depth);
	case 4:
	case 5:
		say(w, "(");
		l = draw_expression(w, depth - 1);
		say(w, " %s ", op);
		r = draw_expression(w, depth - 1);
		say(w, ")");
		return compare(op, l, r);
	default:
		say(w, "(");
		l = draw_expression(w, depth - 1);
		say(w, and? " && " : " || ");
		r = draw_expression(w, depth - 1);
		say(w, ")");
		return logic(and, l, r);
	}
}

static void draw_values(struct values *v)
{
	*v = usual;
	v->a = (int8_t)draw();
	v->b = (uint8_t)draw();
	v->c = draw() % 2 ? (int16_t)draw() : v->a;
	v->d = (uint16_t)draw();
	v->e = draw() % 2 ? (int32_t)draw() : v->c;
	v->f = (uint32_t)draw();
	v->g = draw() % 2 ? (int64_t)draw() : INT64_MIN;
	v->h = draw() % 2 ? draw() : (uint64_t)v->g;
	v->y = draw() % 2 ? v->a / 4.0 : (double)v->h;
	v->behind = (int16_t)draw();
	v->seq[1] = v->a;
	v->last = draw() >> (draw() % 64);
}

static void test_random(void **state)
{
	struct ky_filter_error error;
	unsigned n_true = 0, n_refused = 0;

	for (unsigned i = 0; i < 60000; i++) {
		static struct writer w;
		struct values v;
		struct record *r;
		struct value wanted;

		draw_values(&v);
		w.n = 0;
		w.v = &v;
		wanted = draw_expression(&w, 1 + (unsigned)(draw() % 4));
		if (compile_and_link(w.text, &error) < 0) {
			/* Fails only because of its size. */
			if (!strstr(error.text, "more than") && !strstr(error.text, "too large"))
				fail_msg("%s: %s", w.text, error.text);
			n_refused++;
			continue;
		}
		r = record_new(i % 2 ? PIECES : FLAT, &v);
		if (ky_filter_pass(code, r->flat, r->len, r->pieces, r->n_pieces) !=
			(is_true(wanted) == 1))
			fail_msg("%s is %d", w.text, is_true(wanted));
		n_true += is_true(wanted) == 1;
		record_free(r);
	}
	assert_in_range(n_true, 15000, 45000);
	assert_in_range(n_refused, 0, 600);
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

/* --- the short form --- */

static const struct kymo_field numbers[] = {
	{KYMO_FIELD_INT, 0, 1, 0, 0, "s", NULL},
	{KYMO_FIELD_UINT, 0, 1, 0, 0, "u", NULL},
	{KYMO_FIELD_UINT, 0, 8, 0, 0, "between", NULL},
	{KYMO_FIELD_INT, 0, 1, 0, 0, "far", NULL},
	{0},
};

static bool holds(const char *op, int64_t a, int64_t b)
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

/* Returns whether the payload passes; its first 8 bytes are also an event of one word. */
static bool passes_quickly(const uint8_t *payload, bool word)
{
	const struct ky_filter_quick *q = &((const struct ky_filter_code *)(void *)code)->quick;
	uint64_t first;
	bool pass;

	assert_true(q->end <= 11);
	pass = ky_filter_quick_pass(q, payload);
	memcpy(&first, payload, sizeof(first));
	if (word) {
		assert_true(q->word_end <= 2);
		assert_int_equal(ky_filter_quick_pass_word(q, first), pass);
	}
	return pass;
}

static void link_numbers(const char *text)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	struct ky_filter_error error;
	int n = ky_filter_compile(text, find_context, program, &error);

	assert_true(n > 0);
	assert_true(ky_filter_link(program, (size_t)n, numbers, find_context, code, &error) > 0);
}

/* All values of a field of one byte, beside other bytes, against constants in and out of range. */
static void test_quick(void **state)
{
	static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
	static const int limits[] = {-129, -128, -127, -1, 0, 1, 5, 127, 128, 254, 255, 256};
	uint8_t payload[11];
	char text[64];

	for (size_t i = 0; i < KY_ARRAY_SIZE(ops) * KY_ARRAY_SIZE(limits); i++) {
		const char *op = ops[i / KY_ARRAY_SIZE(limits)];
		int limit = limits[i % KY_ARRAY_SIZE(limits)];

		for (int field = 0; field < 3; field++) {
			snprintf(text, sizeof(text), "%s %s %d",
				(const char *[]){"s", "u", "far"}[field], op, limit);
			link_numbers(text);
			for (int v = 0; v < 256; v++) {
				int value = field == 1 ? v : (int8_t)v;

				memset(payload, v % 2 ? 0xff : 0, sizeof(payload));
				payload[field == 2 ? 10 : field] = (uint8_t)v;
				if (((struct ky_filter_code *)(void *)code)->quick.end ==
					UINT32_MAX) /* nothing passes, or all */
					assert_int_equal(ky_filter_pass(code, payload,
								 sizeof(payload), NULL, 0),
						holds(op, value, limit));
				else
					assert_int_equal(passes_quickly(payload, field < 2),
						holds(op, value, limit));
			}
		}
	}
}

/* Two tests, on the same field and on different ones. */
static void test_quick_pairs(void **state)
{
	static const char *const joined[] = {"%s && %s", "%s || %s", "!(%s && %s)", "!(%s || %s)"};
	uint8_t payload[11];
	char text[64];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(text, sizeof(text), joined[i % 4], "s > -3", i < 4 ? "s <= 3" : "u != 7");
		link_numbers(text);
		for (unsigned n = 0; n < 65536; n++) {
			bool a, b;

			memset(payload, (int)(n % 3), sizeof(payload));
			payload[0] = (uint8_t)n;
			payload[1] = (uint8_t)(n >> 8);
			a = (int8_t)payload[0] > -3;
			b = i < 4 ? (int8_t)payload[0] <= 3 : payload[1] != 7;
			assert_int_equal(passes_quickly(payload, true),
				(i % 2 ? a || b : a && b) != (i % 4 >= 2));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_long_text),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_code_moves),
		cmocka_unit_test(test_quick),
		cmocka_unit_test(test_quick_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
