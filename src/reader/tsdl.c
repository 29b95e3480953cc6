/* SPDX-License-Identifier: MIT */
/* The blocks of TSDL, and the whole. Types are parsed by tsdl-types.c. */
#include "reader/tsdl.h"

#include "reader/ctf2.h"
#include "reader/tsdl-parse.h"

/*
 * Memory for the types and layouts of a text: so much for each of its bytes, so that a small text
 * cannot claim much with types that contain each other.
 */
#define MEMORY_BASE	((size_t)16 << 20)
#define MEMORY_PER_BYTE 64

/* --- blocks --- */

/* Gets the lines of a block: `key = value;` or `key := type;` (a or type is NULL). */
typedef void (*set_fn)(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type);

static void parse_assignment(struct ky_parser *p, set_fn set, void *block)
{
	const char *key = ky_parse_at(p, KY_TOKEN_STRING) ? p->token.text : NULL;

	if (key)
		ky_parse_next(p);
	else
		key = ky_parse_dotted(p);
	if (ky_parse_accept(p, KY_TOKEN_TYPE_ASSIGN)) {
		const struct ky_type *type = ky_parse_type(p);

		if (!p->failed)
			set(p, block, key, NULL, type);
		if (ky_parse_at(p, '}'))
			return; /* some writers forget the semicolon behind the last type */
	} else {
		struct ky_attr a;

		ky_parse_expect(p, '=', "'=' or ':='");
		a = ky_attr_parse(p);
		if (!p->failed)
			set(p, block, key, &a, NULL);
	}
	ky_parse_expect(p, ';', "';'");
}

/* Scopes of fields must be structures. */
static void set_scope(struct ky_parser *p, const struct ky_type **scope, const struct ky_type *type)
{
	if (!type || type->kind != KY_TYPE_STRUCT)
		ky_parse_fail(p, "expected ':=' and a structure");
	*scope = type;
}

static void set_trace(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
	struct ky_tsdl *t = block;

	ky_attr_once(p, t, key);
	if (!strcmp(key, "packet.header")) {
		set_scope(p, &t->packet_header, type);
	} else if (!a) {
		return;
	} else if (!strcmp(key, "byte_order")) {
		t->big_endian = ky_attr_byte_order(p, a) == KY_ORDER_BE;
		p->has_byte_order = !ky_attr_is(a, "native");
	} else if (!strcmp(key, "uuid")) {
		t->has_uuid = ky_uuid_parse(t->uuid, ky_attr_text(p, a));
		if (!t->has_uuid)
			ky_parse_fail(p, "expected a UUID");
	}
}

/* The index by which the layout compiler finds an entry. The last one counts. */
static void index_name(struct ky_parser *p, const void *owner, const char *name, size_t index)
{
	uint32_t *at = p->failed ? NULL : ky_names_at(&p->tsdl->names, owner, name);

	if (at)
		*at = (uint32_t)index;
	else
		ky_parse_fail(p, "the metadata is too large");
}

static void set_env(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
	struct ky_tsdl *t = block;
	struct ky_env *e = a ? ky_parse_grow(p, &t->env, &t->n_env, &p->cap_env, sizeof(*e)) : NULL;
	char digits[24];

	if (!e)
		return;
	e->name = key;
	if (a->kind == KY_ATTR_TEXT) {
		e->text = ky_attr_text(p, a);
	} else {
		e->number = (int64_t)a->number;
		snprintf(digits, sizeof(digits), "%lld", (long long)e->number);
		e->digits = ky_parse_intern(p, digits, strlen(digits));
	}
	index_name(p, &t->n_env, key, t->n_env - 1);
}

/* An offset below 0 is allowed by some writers: as seconds and the rest. */
static void set_clock_offset(struct ky_parser *p, struct ky_trace_clock *c, const struct ky_attr *a)
{
	uint64_t below = -a->number;

	if (!a->is_negative) {
		c->offset = ky_attr_number(p, a, UINT64_MAX);
		return;
	}
	c->offset_s -= (int64_t)(below / c->freq + (below % c->freq > 0));
	c->offset = below % c->freq ? c->freq - below % c->freq : 0;
}

/* The attributes of a clock as they come; an offset depends on the frequency, which may follow. */
struct clock_block {
	struct ky_trace_clock clock;
	struct ky_attr offset;
};

static void set_clock(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
	struct clock_block *b = block;

	if (!a)
		return;
	ky_attr_once(p, &p->tsdl->clocks[p->tsdl->n_clocks - 1], key);
	if (!strcmp(key, "name"))
		b->clock.name = ky_attr_text(p, a);
	else if (!strcmp(key, "description"))
		b->clock.description = ky_attr_text(p, a);
	else if (!strcmp(key, "uuid"))
		b->clock.uuid = ky_attr_text(p, a);
	else if (!strcmp(key, "freq"))
		b->clock.freq = ky_attr_number(p, a, UINT64_MAX);
	else if (!strcmp(key, "offset_s") && a->kind == KY_ATTR_NUMBER)
		b->clock.offset_s = (int64_t)a->number;
	else if (!strcmp(key, "offset_s"))
		ky_parse_fail(p, "expected a number");
	else if (!strcmp(key, "offset"))
		b->offset = *a;
}

static void set_stream(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
	struct ky_tsdl_stream *s = block;

	ky_attr_once(p, s, key);
	if (!strcmp(key, "event.header"))
		set_scope(p, &s->event_header, type);
	else if (!strcmp(key, "event.context"))
		set_scope(p, &s->event_context, type);
	else if (!strcmp(key, "packet.context"))
		set_scope(p, &s->packet_context, type);
	else if (a && !strcmp(key, "id")) {
		s->id = ky_attr_number(p, a, UINT64_MAX);
		s->has_id = true;
	}
}

static void set_event(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
	struct ky_tsdl_event *e = block;

	ky_attr_once(p, e, key);
	if (!strcmp(key, "context"))
		set_scope(p, &e->context, type);
	else if (!strcmp(key, "fields"))
		set_scope(p, &e->fields, type);
	else if (!a)
		return;
	else if (!strcmp(key, "name"))
		e->name = ky_attr_text(p, a);
	else if (!strcmp(key, "id"))
		e->id = ky_attr_number(p, a, UINT64_MAX);
	else if (!strcmp(key, "loglevel"))
		e->loglevel = (int)ky_attr_number(p, a, INT32_MAX);
	else if (!strcmp(key, "stream_id")) {
		e->stream_id = ky_attr_number(p, a, UINT64_MAX);
		e->has_stream_id = true;
	}
}

static void set_nothing(struct ky_parser *p, void *block, const char *key, const struct ky_attr *a,
	const struct ky_type *type)
{
}

/* An environment has no types of its own: any word may name an entry. */
static void parse_block(struct ky_parser *p, set_fn set, void *block)
{
	size_t scope = ky_parse_enter_scope(p);

	ky_parse_expect(p, '{', "'{'");
	while (!p->failed && !ky_parse_accept(p, '}')) {
		if (set == set_env || !ky_parse_declaration(p))
			parse_assignment(p, set, block);
	}
	ky_parse_leave_scope(p, scope);
}

static void parse_trace(struct ky_parser *p)
{
	if (p->has_trace)
		ky_parse_fail(p, "the trace is described twice");
	p->has_trace = true;
	parse_block(p, set_trace, p->tsdl);
	if (!p->has_byte_order)
		ky_parse_fail(p, "the trace needs a byte order: le or be");
}

static void parse_clock(struct ky_parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct clock_block b = {.clock.freq = 1000000000};
	struct ky_trace_clock *c = ky_parse_grow(
		p, &t->clocks, &t->n_clocks, &p->cap_clocks, sizeof(*c));

	if (!c)
		return;
	parse_block(p, set_clock, &b);
	if (!b.clock.freq || !b.clock.name)
		ky_parse_fail(p, "a clock needs a name and a frequency");
	if (p->failed)
		return;
	set_clock_offset(p, &b.clock, &b.offset);
	*c = b.clock;
	ky_trace_clock_prepare(c);
	index_name(p, &t->n_clocks, c->name, t->n_clocks - 1);
}

static void parse_stream(struct ky_parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_stream *s = ky_parse_grow(
		p, &t->streams, &t->n_streams, &p->cap_streams, sizeof(*s));

	if (s)
		parse_block(p, set_stream, s);
}

static void parse_event(struct ky_parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_event *e = ky_parse_grow(
		p, &t->events, &t->n_events, &p->cap_events, sizeof(*e));

	if (!e)
		return;
	e->loglevel = -1;
	parse_block(p, set_event, e);
}

static void parse_top(struct ky_parser *p)
{
	if (ky_parse_accept(p, ';') || ky_parse_declaration(p))
		return;
	if (ky_parse_accept_word(p, "trace"))
		parse_trace(p);
	else if (ky_parse_accept_word(p, "env"))
		parse_block(p, set_env, p->tsdl);
	else if (ky_parse_accept_word(p, "clock"))
		parse_clock(p);
	else if (ky_parse_accept_word(p, "stream"))
		parse_stream(p);
	else if (ky_parse_accept_word(p, "event"))
		parse_event(p);
	else if (ky_parse_accept_word(p, "callsite"))
		parse_block(p, set_nothing, NULL);
	else
		ky_parse_fail(p, "expected a block: trace, env, clock, stream or event");
	ky_parse_expect(p, ';', "';'");
}

/* --- the whole --- */

/* Events without a stream belong to the only one, which may be implicit. */
static void complete_events(struct ky_parser *p)
{
	struct ky_tsdl *t = p->tsdl;

	if (!t->n_streams && t->n_events)
		ky_parse_grow(p, &t->streams, &t->n_streams, &p->cap_streams, sizeof(*t->streams));
	for (size_t i = 0; i < t->n_events && !p->failed; i++) {
		struct ky_tsdl_event *e = &t->events[i];

		if (e->has_stream_id)
			continue;
		if (t->n_streams > 1)
			ky_parse_fail(p,
				"the event '%.64s' needs a stream_id: there are several streams",
				e->name ? e->name : "");
		e->stream_id = t->streams[0].id;
	}
}

static void finish_parsing(struct ky_parser *p)
{
	if (!p->has_trace)
		ky_parse_fail(p, "no trace is described");
	complete_events(p);
	if (p->failed || ky_tsdl_finish(p->tsdl, p->error))
		return;
	p->failed = true;
	p->error->line = p->token.line;
	p->error->column = p->token.column;
}

/* One block; if the end of the text cuts it off, what it added is removed. */
static void parse_next(struct ky_parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	size_t n_env = t->n_env, n_clocks = t->n_clocks, n_streams = t->n_streams,
	       n_events = t->n_events;
	bool had_trace = p->has_trace;

	parse_top(p);
	if (!p->failed || !ky_lexer_is_at_end(&p->lexer) || !had_trace || !(n_streams + n_events))
		return;
	t->n_env = n_env;
	t->n_clocks = n_clocks;
	t->n_streams = n_streams;
	t->n_events = n_events;
	t->is_cut = true;
	p->failed = false;
}

int ky_tsdl_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error)
{
	struct ky_parser p = {.tsdl = t, .error = error};

	memset(t, 0, sizeof(*t));
	memset(error, 0, sizeof(*error));
	t->arena.max = MEMORY_BASE + MEMORY_PER_BYTE * len;
	ky_names_init(&t->names, &t->arena);
	if (ky_ctf2_is(text, len))
		return ky_ctf2_parse(t, text, len, error);
	ky_lexer_init(&p.lexer, &t->names, text, len);
	ky_parse_next(&p);
	while (!p.failed && !ky_parse_at(&p, KY_TOKEN_END))
		parse_next(&p);
	t->is_cut |= p.lexer.is_cut;
	if (!p.failed)
		finish_parsing(&p);
	free(p.declared);
	ky_buf_deinit(&p.words);
	return p.failed ? -EINVAL : 0;
}
