/* SPDX-License-Identifier: MIT */
/*
 * The same as temporaries.cpp in C: values in arrays of structures that functions return, and in
 * compound literals.
 */
#include "temporaries.h"

struct label {
	char text[4096];
};

static struct label label(int letter, size_t n)
{
	struct label l;

	memset(l.text, letter, n);
	l.text[n] = 0;
	return l;
}

struct item {
	size_t n;
};

KYMO_STRUCT(item, const struct item *i, kymo_u32(n, (uint32_t)i->n),
	kymo_string(name, label('i', i->n).text),
	kymo_seq_u8(bytes, ((const unsigned char[100]){'c', 'c'}), 100))
KYMO_STRUCT(box, const struct item *i,
	kymo_array_struct(items, item, ((struct item[2]){*i, *i}), 2), kymo_u8(end, 'e'))
KYMO_EVENT_DEFINE(
	temporary, defined, KYMO_INFO, KYMO_ARGS(size_t n), kymo_string(a, label('d', n).text))

static void want_item(size_t n)
{
	want_u32((uint32_t)n), want_text('i', n), want_u32(100), want_letters('c', 2),
		want_letters(0, 98);
}

static void check(size_t n)
{
	uint64_t since = 0;

	kymo_event(temporary, string, kymo_string(a, label('a', n).text),
		kymo_seq_u8(b, label('b', n).text, n),
		kymo_text(c, ((struct label){"cc"}).text, 70),
		kymo_string(d, __extension__({ label('d', n); }).text));
	want_text('a', n), want_u32((uint32_t)n), want_letters('b', n), want_letters('c', 2),
		want_letters(0, 68), want_text('d', n);
	EXPECT;
	kymo_trace(temporary, defined, n);
	want_text('d', n);
	EXPECT;
	kymo_event(temporary, deep, kymo_struct(a, item, (&(struct item){n})),
		kymo_seq_struct(b, box, ((struct item[1]){{n}}), 1),
		kymo_optional_struct(c, item, (&(struct item){n})), kymo_u8(x, 'x'));
	want_item(n), want_u32(1), want_item(n), want_item(n), want_letters('e', 1), want_u32(1),
		want_item(n), want_letters('x', 1);
	EXPECT;
	kymo_state_event(temporary, state, kymo_string(key, label('k', n).text),
		kymo_struct(a, box, (&(struct item){n})));
	want_bytes(&since, sizeof(since)), want_text('k', n), want_item(n), want_item(n),
		want_letters('e', 1);
	EXPECT;
}

int main(void)
{
	static const size_t lengths[] = {0, 1, 15, 16, 17, 62, 63, 64, 65, 66, 200, 4000};
	size_t i;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		check(lengths[i]);
	return wrong;
}
