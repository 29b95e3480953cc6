/* SPDX-License-Identifier: MIT */
/*
 * Nested fields, and blocks of data. test-nested.py has the texts that readers must print for them.
 * Also compiled as C++.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/nested.h>
#include <kymo/state.h>

#define N_POINTS 65

struct point {
	int32_t x;
	double y;
};

enum type { NUMBER = -7, TEXT = 9, DATA, POINTS, NOTHING };

struct reply {
	enum type type;
	int64_t number;
	const char *text;
	const struct point *points;
	size_t n;
};

KYMO_ENUM(colour, KYMO_VALUE("RED", 1), KYMO_VALUE("BLUE", 2))
KYMO_STRUCT(point, const struct point *p, kymo_i32(x, p->x), kymo_f64(y, p->y))
KYMO_STRUCT(named, const struct reply *r, kymo_string(name, r->text),
	kymo_seq_u8(bytes, r->text, strlen(r->text)), kymo_enum(colour, colour, r->n),
	kymo_u8(_bytes_length, 7))
KYMO_STRUCT(one, const struct point *p, kymo_struct(point, point, p),
	kymo_array_struct(pair, point, p, 2))
KYMO_STRUCT(two, const struct point *p, kymo_struct(one, one, p), kymo_u8(end, 2))
KYMO_STRUCT(three, const struct point *p, kymo_struct(two, two, p))
KYMO_STRUCT(four, const struct point *p, kymo_struct(three, three, p))
KYMO_STRUCT(five, const struct point *p, kymo_struct(four, four, p))
KYMO_STRUCT(six, const struct point *p, kymo_struct(five, five, p))
KYMO_STRUCT(seven, const struct point *p, kymo_struct(six, six, p))
KYMO_STRUCT(eight, const struct point *p, kymo_struct(seven, seven, p))
KYMO_VARIANT(inner, const struct reply *r, r->n, kymo_case(2, kymo_u8(two, 2)),
	kymo_case(3, kymo_u16(three, 3)))
KYMO_VARIANT(reply, const struct reply *r, r->type, kymo_case(NUMBER, kymo_i64(number, r->number)),
	kymo_case(TEXT, kymo_string(text, r->text)),
	kymo_case(DATA, kymo_blob(data, r->text, strlen(r->text))),
	kymo_case(POINTS, kymo_seq_struct(points, point, r->points, r->n)))
KYMO_VARIANT(outer, const struct reply *r, r->type,
	kymo_case(NUMBER, kymo_variant(inner, inner, r)),
	kymo_case(TEXT, kymo_struct(named, named, r)))
KYMO_VARIANT(nothing, int which, which, kymo_case(1, kymo_i32(none, which)),
	kymo_case(2, kymo_i32(none_, which)))
KYMO_STRUCT(answer, const struct reply *r, kymo_u8(before, 1), kymo_variant(reply, reply, r),
	kymo_u8(behind, 2))

static struct point points[N_POINTS];
static struct reply replies[] = {{NUMBER, -1, "one", points, 1},
	{TEXT, 2, "a text of more than sixteen bytes", points, 2}, {DATA, 3, "abc", points, 3},
	{POINTS, 4, "", points, 2}, {NOTHING, 5, "", points, 5}};

static void structures(void)
{
	kymo_event(nested, structure, kymo_struct(to, point, &points[1]), kymo_u8(end, 1));
	kymo_event(nested, array, kymo_array_struct(corners, point, points, 3), kymo_u8(end, 1));
	kymo_event(nested, sequence, kymo_seq_struct(path, point, points, 2),
		kymo_seq_struct(none, point, points, 0), kymo_u8(end, 1));
	kymo_event(nested, longest, kymo_seq_struct(path, point, points, KYMO_SEQ_STRUCTS_MAX));
	kymo_event(
		nested, named, kymo_seq_struct(list, named, replies, 2), kymo_string(end, "end"));
	kymo_event(nested, too_many, kymo_seq_struct(path, point, points, N_POINTS),
		kymo_string(end, "end"));
	kymo_event(nested, deep, kymo_struct(seven, seven, points));
	kymo_event(nested, too_deep, kymo_struct(eight, eight, points));
}

static void truths(void)
{
	const bool yes = true;

	kymo_event(nested, truths, kymo_optional(bool, yes, &yes), kymo_optional(bool, no, NULL));
}

static void lengths(void)
{
	kymo_event(nested, lengths, kymo_seq_u8(a, "a", 1), kymo_u8(a_length, 2),
		kymo_variant(which, nothing, 1), kymo_u8(which_tag, 3), kymo_u8(_x_length, 4),
		kymo_seq_u8(_x, "b", 1), kymo_u8(__x, 5));
}

static void options(const int32_t *here, const char *text)
{
	kymo_event(nested, options, kymo_optional(i32, number, here),
		kymo_optional_string(text, text),
		kymo_optional_struct(point, point, here ? &points[1] : NULL), kymo_u8(end, 1));
}

static void variants(void)
{
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
		kymo_event(
			nested, variant, kymo_variant(reply, reply, &replies[i]), kymo_u8(end, 1));
	kymo_event(nested, answers, kymo_array_struct(answers, answer, replies, 5),
		kymo_u8(_reply_tag, 3));
	kymo_event(nested, lists, kymo_array_variant(all, reply, replies, 5),
		kymo_seq_variant(some, inner, replies, 3),
		kymo_seq_variant(none, outer, replies, 0), kymo_u8(end, 1));
	for (size_t i = 0; i < 3; i++)
		kymo_event(nested, nested, kymo_variant(outer, outer, &replies[i]),
			kymo_u8(_outer_tag, 3));
	for (int i = 1; i <= 3; i++)
		kymo_event(nested, nothing, kymo_variant(which, nothing, i));
}

static void blobs(void)
{
	static unsigned char picture[1000];

	memset(picture, 0xff, sizeof(picture));
	kymo_event(nested, blobs, kymo_blob(small, "text/plain; charset=\"utf-8\"", "ab", 2),
		kymo_blob(large, "image/png", picture, sizeof(picture)),
		kymo_blob(plain, picture, 1), kymo_u8(end, 1));
}

int main(int argc, char **argv)
{
	const int32_t number = 5;

	for (int i = 0; i < N_POINTS; i++) {
		points[i].x = i;
		points[i].y = i / 2.0;
	}
	structures();
	options(&number, "here");
	options(NULL, NULL);
	options(&number,
		argc > 1
			? argv[1]
			: "a text that is longer than what is copied into the scratch buffer, which is 64 bytes");
	truths();
	lengths();
	variants();
	blobs();
	kymo_state_event(nested, state, kymo_struct(key, point, &points[2]),
		kymo_seq_struct(path, point, points, 1));
	return 0;
}
