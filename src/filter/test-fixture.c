/* SPDX-License-Identifier: MIT */
#include "filter/test-fixture.h"

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

const struct kymo_field fields[] = {
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

static void put_in_scratch(struct record *r, const void *p, size_t n)
{
	memcpy(r->scratch + r->len, p, n);
	r->len += n;
}

/* Puts data that is a piece of its own if there are pieces. */
static void put_data(struct record *r, const void *p, size_t n, uint32_t flags)
{
	if (r->layout == FLAT || !n) {
		put_in_scratch(r, p, n);
		return;
	}
	close_scratch(r);
	add_piece(r, p, n, flags);
}

static void put_string(struct record *r, const char *s)
{
	put_data(r, s, strlen(s), KYMO_PIECE_TEXT);
	put_in_scratch(r, "", 1);
}

static void put_count(struct record *r, uint32_t n)
{
	put_in_scratch(r, &n, sizeof(n));
}

#define PUT(r, type, value)                                                                        \
	do {                                                                                       \
		type put_value = (value);                                                          \
		put_in_scratch(r, &put_value, sizeof(put_value));                                  \
	} while (0)

const struct values usual = {-5, 200, -300, 60000, -70000, 4000000000u, -5000000000000,
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

struct record *record_new(enum layout layout, const struct values *v)
{
	static const int32_t arr[] = {1, -2, 3};
	static const double fseq[] = {0.5, 1e300};
	struct record *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->layout = layout;
	put_in_scratch(r, &v->a, 1);
	put_in_scratch(r, &v->b, 1);
	put_in_scratch(r, &v->c, 2);
	put_in_scratch(r, &v->d, 2);
	put_in_scratch(r, &v->e, 4);
	put_in_scratch(r, &v->f, 4);
	put_in_scratch(r, &v->g, 8);
	put_in_scratch(r, &v->h, 8);
	PUT(r, float, 1.5f);
	put_in_scratch(r, &v->y, 8);
	PUT(r, double, __builtin_nan(""));
	PUT(r, uint8_t, 1);
	PUT(r, int32_t, -1);
	put_in_scratch(r, "\x01\xbb", 2);
	put_in_scratch(r, "\xff\xff\xff\xfe", 4);
	put_data(r, arr, sizeof(arr), 0);
	put_in_scratch(r, "ab\0\0\0\0\0\0", 8);
	PUT(r, uint32_t, 12345);
	PUT(r, uint64_t, UINT64_MAX - 1);
	put_string(r, v->name);
	put_in_scratch(r, &v->behind, 2);
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
	put_in_scratch(r, &v->last, 8);
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

void record_free(struct record *r)
{
	for (size_t i = 0; i < r->n_pieces; i++)
		free((void *)r->pieces[i].ptr);
	free(r->flat);
	free(r);
}

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

bool find_context(const char *name, struct ky_filter_context *ret)
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

uint64_t code[KY_FILTER_CODE_MAX / 8];

int compile_and_link(const char *text, struct ky_filter_error *error)
{
	uint8_t program[KY_FILTER_PROGRAM_MAX];
	int n = ky_filter_compile(text, find_context, program, error);

	return n < 0 ? n : ky_filter_link(program, (size_t)n, fields, find_context, code, error);
}

bool passes(const char *text, const struct record *r)
{
	struct ky_filter_error error;
	int n = compile_and_link(text, &error);

	if (n < 0)
		fail_msg("%s: %d, %s", text, n, error.text);
	return ky_filter_pass(code, r->flat, r->len, r->pieces, r->n_pieces);
}

static uint64_t random_state = 1;

uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}
