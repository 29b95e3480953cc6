/* SPDX-License-Identifier: MIT */
/*
 * Uses the macros of the installed headers. test-headers.py compiles it as each standard of C and
 * of C++.
 */
#include <kymo/nested.h>
#include <kymo/span.h>
#include <kymo/state.h>
#include <kymo/tracepoint.h>
#include <stdbool.h> /* its macros must not interfere */

KYMO_ENUM(colour, KYMO_VALUE("RED", 0), KYMO_VALUE("MINUS", -1), KYMO_RANGE("MANY", 2, 9))
KYMO_EVENT_DEFINE(
	use, defined, KYMO_INFO, KYMO_ARGS(int a, const char *b), kymo_i32(a, a), kymo_string(b, b))
KYMO_EVENT_CLASS(use, cls, KYMO_ARGS(double x), kymo_f64(x, x))
KYMO_EVENT_INSTANCE(use, cls, one, KYMO_INFO)
KYMO_EVENT_INSTANCE(use, cls, two, KYMO_DEBUG)
KYMO_EVENT_DEFINE(use, nothing, KYMO_INFO, KYMO_NO_ARGS)

static void scalars(int n)
{
	kymo_event(use, empty);
	kymo_event(use, ints, kymo_i8(a, -1), kymo_i16(b, 2), kymo_i32(c, n), kymo_i64(d, n),
		kymo_u8(e, 1), kymo_u16(f, 1), kymo_u32(g, 1), kymo_u64(h, 1), kymo_x8(i, 1),
		kymo_x16(j, 1), kymo_x32(k, 1), kymo_x64(l, 1));
	kymo_event_level(use, others, KYMO_WARNING, kymo_net16(a, 1), kymo_net32(b, 2),
		kymo_net64(c, 3), kymo_netx16(d, 1), kymo_netx32(e, 2), kymo_netx64(f, 3),
		kymo_f32(g, 1.5f), kymo_f64(h, 2.5), kymo_bool(i, n), kymo_ptr(j, &n),
		kymo_enum(k, colour, n), kymo_enum_u8(l, colour, 1));
}

static void several(const char *s, size_t n)
{
	static const int32_t numbers[4] = {1, 2, 3, 4};
	static const char *const words[2] = {"one", "two"};

	kymo_event(use, several, kymo_string(a, s), kymo_array_i32(b, numbers, 4),
		kymo_seq_i32(c, numbers, n), kymo_array_string(d, words, 2),
		kymo_seq_string(e, words, 2), kymo_text(f, "text", 4), kymo_text_seq(g, s, n),
		kymo_blob(h, numbers, n), kymo_array_enum(i, colour, numbers, 4),
		kymo_seq_enum(j, colour, numbers, n));
}

struct pair {
	int a;
	const char *b;
};

KYMO_STRUCT(pair, const struct pair *p, kymo_i32(a, p->a), kymo_string(b, p->b))
KYMO_STRUCT(pairs, const struct pair *p, kymo_array_struct(pairs, pair, p, 1), kymo_f64(x, 1))
KYMO_VARIANT(either, const struct pair *p, p->a, kymo_case(0, kymo_string(b, p->b)),
	kymo_case(1, kymo_struct(pairs, pairs, p)))

static void nested(const struct pair *p, size_t n)
{
	kymo_event(use, nested, kymo_struct(one, pair, p), kymo_seq_struct(some, pairs, p, n),
		kymo_variant(either, either, p), kymo_optional(i32, a, &p->a),
		kymo_optional_string(b, p->b), kymo_optional_struct(maybe, pair, p),
		kymo_blob(blob, "text/plain", p->b, n));
}

static void spans(int n, uint64_t id, const unsigned char *ids)
{
	kymo_span(use, block);
	kymo_span(use, other_block, kymo_i32(n, n), kymo_w3c_trace_id(ids), kymo_w3c_span_id(ids),
		kymo_w3c_parent_id(ids));
	kymo_span_begin(use, part);
	if (n)
		kymo_span_begin(use, inner, kymo_i32(n, n));
	else
		kymo_span_end(use, part, kymo_string(s, "text"), kymo_bool(b, n));
	kymo_async_begin(use, request, id);
	kymo_async_end(use, request, id, kymo_i32(status, 0));
	kymo_flow_begin(use, order, 1);
	kymo_flow_step(use, order, 1, kymo_i32(n, n));
	kymo_flow_end(use, order, 1);
	kymo_counter(use, length, n);
	kymo_counter_f64(use, load, 0.5);
	kymo_state_event(use, mode, kymo_i32(n, n));
	kymo_state_event(
		use, user, kymo_string(name, "name"), kymo_i32(n, n), kymo_seq_u8(ids, ids, 16));
	if (n)
		kymo_state_end(use, user, kymo_string(name, "name"));
	else
		kymo_state_end(use, mode, kymo_i32(n, n));
}

int main(int argc, char **argv)
{
	static const unsigned char ids[16] = {1, 2, 3};

	if (kymo_event_enabled(use, ints) || kymo_trace_enabled(use, defined))
		scalars(argc);
	const struct pair pair = {1, argv[0]};

	several(argv[0], 2);
	nested(&pair, 1);
	spans(argc, 7, ids);
	kymo_trace(use, defined, 1, "b");
	kymo_trace(use, one, 1.0);
	kymo_trace(use, two, 2.0);
	kymo_trace(use, nothing);
	kymo_tracef("number %d", argc);
	kymo_tracelog(KYMO_NOTICE, "text %s", argv[0]);
	return 0;
}
