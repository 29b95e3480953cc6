// SPDX-License-Identifier: MIT
/*
 * Values of fields in C++ temporaries, long and short: the record has the values as they were, and
 * nothing reads them afterwards (the address sanitizer checks it). Also strings that know their
 * length. Exit status: the number of wrong records.
 */
#include "temporaries.h"

#include <memory>
#include <string>
#include <vector>
#if __cplusplus >= 201703L
#include <string_view>
#endif

static std::string text(char letter, size_t n)
{
	return std::string(n, letter);
}

static std::vector<int32_t> numbers(size_t n)
{
	return std::vector<int32_t>(n, 0x61616161);
}

struct person {
	size_t n;
	std::string name() const
	{
		return text('p', n);
	}
};

struct team {
	size_t n;
	std::vector<person> members() const
	{
		return std::vector<person>(3, person{n});
	}
	person boss() const
	{
		return person{n};
	}
};

KYMO_STRUCT(person, const person *p, kymo_u32(n, static_cast<uint32_t>(p->n)),
	kymo_string(name, p->name().c_str()), kymo_string(again, p->name()))
KYMO_STRUCT(team, const team *t, kymo_string(title, (t->boss().name() + "!").c_str()),
	kymo_struct(boss, person, &static_cast<const person &>(t->boss())),
	kymo_seq_struct(members, person, t->members().data(), t->members().size()),
	kymo_u8(end, 'e'))
KYMO_VARIANT(choice, const person *p, p->n % 2, kymo_case(0, kymo_string(even, p->name().c_str())),
	kymo_case(1, kymo_seq_u8(odd, p->name().data(), p->n)))
KYMO_STRUCT(pair, const int32_t *p, kymo_i32(a, p[0]), kymo_i32(b, p[1]))
KYMO_EVENT_DEFINE(temporary, defined, KYMO_INFO, KYMO_ARGS(const person &p),
	kymo_string(name, p.name().c_str()), kymo_string(more, ("<" + p.name() + ">").c_str()))

static void want_person(uint32_t n)
{
	want_u32(n);
	want_text('p', n);
	want_text('p', n);
}

static void want_team(uint32_t n)
{
	want_letters('p', n);
	want_text('!', 1);
	want_person(n);
	want_u32(3);
	want_person(n), want_person(n), want_person(n);
	want_letters('e', 1);
}

static void plain(size_t n)
{
	uint32_t count = static_cast<uint32_t>(n);

	kymo_event(temporary, string, kymo_string(a, text('a', n).c_str()), kymo_u8(x, 'x'),
		kymo_string(b, text('b', n)));
	want_text('a', n), want_letters('x', 1), want_text('b', n);
	EXPECT;
	kymo_event(temporary, sequence, kymo_seq_i32(a, numbers(n).data(), n),
		kymo_text_seq(b, text('b', n).data(), n), kymo_blob(c, text('c', n).data(), n),
		kymo_blob(d, "text/plain", (text('d', n) + "").data(), n));
	want_u32(count), want_letters('a', 4 * n), want_u32(count), want_letters('b', n),
		want_u32(count);
	want_letters('c', n), want_letters(0, 1), want_u32(count), want_letters('d', n);
	EXPECT;
	kymo_event(temporary, optional, kymo_optional_string(a, text('a', n).c_str()),
		kymo_optional(i32, b, std::unique_ptr<int32_t>(new int32_t(0x62626262)).get()),
		kymo_array_i32(c, numbers(32).data(), 32));
	want_u32(1), want_text('a', n), want_u32(1), want_letters('b', 4), want_letters('a', 128);
	EXPECT;
	kymo_event(temporary, shared,
		kymo_string(a, std::make_shared<std::string>(n, 's')->c_str()),
		kymo_string(b, n ? text('t', n).c_str() : std::string().c_str()));
	want_text('s', n), want_text('t', n);
	EXPECT;
	const char *const words[] = {"one", "two"};
	kymo_event(temporary, words, kymo_array_string(a, words, 2),
		kymo_seq_string(b, (std::vector<const char *>(1, text('w', n).c_str()).data()), 1));
	want_bytes("one\0two", 8), want_u32(1), want_text('w', n);
	EXPECT;
	kymo_trace(temporary, defined, person{n});
	want_text('p', n), want_letters('<', 1), want_letters('p', n), want_text('>', 1);
	EXPECT;
#if __cplusplus >= 201703L
	kymo_event(temporary, view, kymo_string(a, std::string_view(text('v', n + 9)).substr(0, n)),
		kymo_string(b, std::string_view("cut\0short", 9)));
	want_text('v', n), want_bytes("cut", 4);
	EXPECT;
#endif
}

static void deep(size_t n)
{
	uint32_t count = static_cast<uint32_t>(n);
	const int32_t pairs[] = {1, 2, 3, 4};

	kymo_event(temporary, one,
		kymo_struct(a, person, std::unique_ptr<person>(new person{n}).get()),
		kymo_u8(x, 'x'));
	want_person(count), want_letters('x', 1);
	EXPECT;
	kymo_event(temporary, team, kymo_string(first, text('f', n).c_str()),
		kymo_struct(a, team, std::make_shared<team>(team{n}).get()),
		kymo_optional_struct(b, team, std::make_shared<team>(team{n}).get()),
		kymo_string(last, text('l', n).c_str()));
	want_text('f', n), want_team(count), want_u32(1), want_team(count), want_text('l', n);
	EXPECT;
	kymo_event(temporary, many, kymo_array_struct(a, person, team{n}.members().data(), 3),
		kymo_seq_struct(b, person, team{n}.members().data(), 3),
		kymo_seq_struct(c, person, team{n}.members().data(), 0));
	want_person(count), want_person(count), want_person(count), want_u32(3);
	want_person(count), want_person(count), want_person(count), want_u32(0);
	EXPECT;
	kymo_event(temporary, variant,
		kymo_variant(a, choice, std::unique_ptr<person>(new person{n}).get()),
		kymo_seq_variant(b, choice, team{n}.members().data(), 2));
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			want_u32(2);
		want_letters(static_cast<int>(n % 2), 1);
		if (n % 2)
			want_u32(count), want_letters('p', n);
		else
			want_text('p', n);
	}
	EXPECT;
	kymo_event(temporary, scalars, kymo_array_struct(a, pair, pairs, 1),
		kymo_seq_struct(b, pair, pairs, 1),
		kymo_optional_struct(c, pair, static_cast<const int32_t *>(nullptr)));
	want_u32(1), want_u32(2), want_u32(1), want_u32(1), want_u32(2), want_u32(0);
	EXPECT;
}

static void others(size_t n)
{
	uint64_t since = 0;

	kymo_state_event(temporary, state, kymo_string(key, text('k', n).c_str()),
		kymo_string(a, text('a', n).c_str()),
		kymo_struct(b, team, std::make_shared<team>(team{n}).get()));
	want_bytes(&since, sizeof(since)), want_text('k', n), want_text('a', n),
		want_team(static_cast<uint32_t>(n));
	EXPECT;
	kymo_state_end(temporary, state, kymo_string(key, text('k', n).c_str()));
	want_text('k', n);
	EXPECT;
	kymo_async_begin(temporary, job, 7, kymo_string(a, text('a', n).c_str()),
		kymo_string(b, text('b', n).c_str()));
	since = 7;
	want_bytes(&since, sizeof(since)), want_text('a', n), want_text('b', n);
	EXPECT;
	{
		kymo_span(temporary, work, kymo_string(a, text('a', n).c_str()),
			kymo_struct(b, person, &static_cast<const person &>(person{n})));
		want_u32(0), want_text('a', n), want_person(static_cast<uint32_t>(n));
		EXPECT;
	}
	want_u32(0);
	EXPECT;
}

template <typename T> static void in_template(const T &value, size_t n)
{
	kymo_event(temporary, templated, kymo_string(a, value(n).c_str()),
		kymo_string(b, [&] { return value(n); }()));
	want_text('t', n), want_text('t', n);
	EXPECT;
}

int main()
{
	const size_t lengths[] = {0, 1, 15, 16, 17, 62, 63, 64, 65, 66, 200, 5000};

	for (size_t n : lengths) {
		plain(n);
		deep(n);
		others(n);
		in_template([](size_t m) { return text('t', m); }, n);
	}
	return wrong;
}
