/* SPDX-License-Identifier: MIT */
/*
 * CTF2-SPEC-2.0: the fragments. Refuses by name all extensions, and the types that this reader does
 * not decode: bit orders other than the usual one of the byte order, floating point numbers of
 * other than 32 and 64 bits, integers of more than 64 bits.
 */
#include "reader/ctf2.h"

#include "reader/ctf2-parse.h"

#define MAX_JSON_DEPTH (4 * KY_TSDL_MAX_DEPTH)
#define FRAGMENT_MAX   (1u << 20) /* json-c needs hundreds of bytes for each element */

static void parse_preamble(struct ky_ctf2 *p, json *o)
{
	json *uuid = ky_ctf2_kind(p, o, "uuid", json_type_array);
	struct ky_tsdl *t = p->tsdl;

	if (p->has_preamble)
		ky_ctf2_fail(p, "there are two preambles");
	if (ky_ctf2_number(p, o, "version", 0, UINT32_MAX) != 2)
		ky_ctf2_fail(p, "this is version %llu of CTF: only 1.8 and 2 can be read",
			(unsigned long long)ky_ctf2_number(p, o, "version", 0, UINT32_MAX));
	p->has_preamble = true;
	if (!uuid)
		return;
	t->has_uuid = json_object_array_length(uuid) == sizeof(t->uuid);
	for (size_t i = 0; t->has_uuid && i < sizeof(t->uuid); i++)
		t->uuid[i] = (uint8_t)ky_ctf2_number_of(
			p, json_object_array_get_idx(uuid, i), "uuid");
	if (!t->has_uuid)
		ky_ctf2_fail(p, "'uuid' is not 16 numbers");
}

static void parse_alias(struct ky_ctf2 *p, json *o)
{
	const char *name = ky_ctf2_text(p, o, "name");

	if (!name)
		ky_ctf2_fail(p, "an alias has no name");
	ky_ctf2_add_alias(p, name, ky_ctf2_member(o, "field-class"));
}

static void parse_environment(struct ky_ctf2 *p, json *o)
{
	json *list = ky_ctf2_kind(p, o, "environment", json_type_object);
	struct ky_tsdl *t = p->tsdl;

	if (!list)
		return;
	json_object_object_foreach(list, key, value)
	{
		struct ky_env *e = ky_ctf2_grow(p, &t->env, &t->n_env, &p->cap_env, sizeof(*e));

		if (!e)
			return;
		e->name = ky_ctf2_intern(p, key);
		if (json_object_get_type(value) == json_type_string) {
			e->text = ky_ctf2_intern(p, json_object_get_string(value));
		} else {
			e->number = (int64_t)ky_ctf2_number_of(p, value, "environment");
			e->digits = ky_ctf2_intern(p, json_object_get_string(value));
		}
	}
}

static void parse_trace(struct ky_ctf2 *p, json *o)
{
	if (p->has_trace)
		ky_ctf2_fail(p, "the trace is described twice");
	p->has_trace = true;
	parse_environment(p, o);
	p->tsdl->packet_header = ky_ctf2_scope(p, o, "packet-header-field-class");
}

static void parse_clock(struct ky_ctf2 *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_trace_clock *c = ky_ctf2_grow(
		p, &t->clocks, &t->n_clocks, &p->cap_clocks, sizeof(*c));
	json *offset = ky_ctf2_kind(p, o, "offset-from-origin", json_type_object);
	json *seconds = offset ? ky_ctf2_member(offset, "seconds") : NULL;
	const char *id = ky_ctf2_text(p, o, "id");

	if (!c)
		return;
	c->name = ky_ctf2_text(p, o, "name");
	c->description = ky_ctf2_text(p, o, "description");
	c->freq = ky_ctf2_number(p, o, "frequency", 0, UINT64_MAX);
	if (seconds)
		c->offset_s = (int64_t)ky_ctf2_number_of(p, seconds, "seconds");
	if (offset)
		c->offset = ky_ctf2_number(p, offset, "cycles", 0, UINT64_MAX);
	if (!c->name)
		c->name = id;
	if (!id)
		id = c->name; /* in drafts */
	if (!c->freq || !id)
		ky_ctf2_fail(p, "a clock needs an id and a frequency");
	else if (!ky_ctf2_add_name(p, &t->n_clocks, id, t->n_clocks - 1))
		ky_ctf2_fail(p, "two clocks have the id '%.64s'", id);
	else
		ky_trace_clock_prepare(c);
}

static void parse_stream(struct ky_ctf2 *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_stream *s = ky_ctf2_grow(
		p, &t->streams, &t->n_streams, &p->cap_streams, sizeof(*s));

	if (!s)
		return;
	s->id = ky_ctf2_number(p, o, "id", 0, UINT64_MAX);
	s->clock = ky_ctf2_text(p, o, "default-clock-class-id");
	if (!s->clock)
		s->clock = ky_ctf2_text(p, o, "default-clock-class-name"); /* in drafts */
	s->packet_context = ky_ctf2_scope(p, o, "packet-context-field-class");
	s->event_header = ky_ctf2_scope(p, o, "event-record-header-field-class");
	s->event_context = ky_ctf2_scope(p, o, "event-record-common-context-field-class");
}

/* Of the attributes that babeltrace2 writes. */
static int parse_loglevel(json *o)
{
	static const char *const levels[] = {"emergency", "alert", "critical", "error", "warning",
		"notice", "info", "debug:system", "debug:program", "debug:process", "debug:module",
		"debug:unit", "debug:function", "debug:line", "debug"};
	json *attributes = ky_ctf2_member(
		o, ky_ctf2_member(o, "attributes") ? "attributes" : "user-attributes");
	json *space = attributes ? ky_ctf2_member(attributes, "babeltrace.org,2020") : NULL;
	json *level = space ? ky_ctf2_member(space, "log-level") : NULL;

	for (size_t i = 0; level && i < KY_ARRAY_SIZE(levels); i++) {
		if (!strcmp(json_object_get_string(level), levels[i]))
			return (int)i;
	}
	return -1;
}

static void parse_event(struct ky_ctf2 *p, json *o)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_event *e = ky_ctf2_grow(
		p, &t->events, &t->n_events, &p->cap_events, sizeof(*e));

	if (!e)
		return;
	e->name = ky_ctf2_text(p, o, "name");
	e->id = ky_ctf2_number(p, o, "id", 0, UINT64_MAX);
	e->stream_id = ky_ctf2_number(p, o, "data-stream-class-id", 0, UINT64_MAX);
	e->loglevel = parse_loglevel(o);
	e->context = ky_ctf2_scope(p, o, "specific-context-field-class");
	e->fields = ky_ctf2_scope(p, o, "payload-field-class");
}

static const struct {
	const char *name;
	void (*parse)(struct ky_ctf2 *p, json *o);
} fragments[] = {
	{"preamble", parse_preamble},
	{"field-class-alias", parse_alias},
	{"trace-class", parse_trace},
	{"clock-class", parse_clock},
	{"data-stream-class", parse_stream},
	{"event-record-class", parse_event},
};

static void parse_fragment(struct ky_ctf2 *p, json *o)
{
	const char *type = json_object_get_type(o) == json_type_object ? ky_ctf2_text(p, o, "type")
								       : NULL;

	if (!type) {
		ky_ctf2_fail(p, "a fragment is not an object with a type");
		return;
	}
	ky_ctf2_refuse_extensions(p, o);
	if (!p->has_preamble && strcmp(type, "preamble"))
		ky_ctf2_fail(p, "the metadata does not begin with a preamble");
	for (size_t i = 0; i < KY_ARRAY_SIZE(fragments) && !p->failed; i++) {
		if (!strcmp(type, fragments[i].name)) {
			fragments[i].parse(p, o);
			return;
		}
	}
	ky_ctf2_fail(p, "unknown type of fragment '%.64s'", type);
}

/* --- the whole --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == KY_CTF2_SEPARATOR;
}

/*
 * Parses one object at text. Returns how many bytes it has. A fragment that the end of the text
 * cuts off is left out.
 */
static size_t parse_text(
	struct ky_ctf2 *p, struct json_tokener *tokener, const char *text, size_t len, bool is_last)
{
	enum json_tokener_error error;
	size_t n;
	json *o;

	json_tokener_reset(tokener);
	o = json_tokener_parse_ex(tokener, text, (int)KY_MIN(len, (size_t)FRAGMENT_MAX));
	error = json_tokener_get_error(tokener);
	n = json_tokener_get_parse_end(tokener);
	if (o)
		parse_fragment(p, o);
	else if (len > FRAGMENT_MAX && error == json_tokener_continue)
		ky_ctf2_fail(p, "a fragment is larger than 1 MiB");
	else if (is_last && p->tsdl->n_streams && error == json_tokener_continue)
		p->tsdl->is_cut = true;
	else
		ky_ctf2_fail(p, "this is CTF 2, but not JSON: %s",
			error == json_tokener_continue ? "the fragment has no end"
						       : json_tokener_error_desc(error));
	json_object_put(o);
	return o ? n : len;
}

/* Drafts of CTF 2 have no separators: objects may follow each other without any. */
static void parse_fragments(struct ky_ctf2 *p, const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(MAX_JSON_DEPTH);
	const char *end = text + len, *stop = text;

	if (!tokener)
		ky_ctf2_fail(p, "no memory");
	p->line = 1;
	while (!p->failed && text < end) {
		size_t n = 1;

		if (text >= stop) {
			stop = memchr(text + 1, KY_CTF2_SEPARATOR, (size_t)(end - text - 1));
			stop = stop ? stop : end;
		}
		if (!is_blank(*text))
			n = parse_text(p, tokener, text, (size_t)(stop - text), stop == end);
		for (; n > 0; n--)
			p->line += *text++ == '\n';
	}
	if (tokener)
		json_tokener_free(tokener);
}

bool ky_ctf2_is(const char *text, size_t len)
{
	while (len && is_blank(*text) && *text != KY_CTF2_SEPARATOR) {
		text++;
		len--;
	}
	return len && (*text == KY_CTF2_SEPARATOR || *text == '{');
}

int ky_ctf2_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error)
{
	struct ky_ctf2 p = {.tsdl = t, .error = error};

	t->is_ctf2 = true;
	parse_fragments(&p, text, len);
	if (!p.has_trace && !p.failed && !t->n_streams)
		ky_ctf2_fail(&p, "no stream is described");
	if (!p.failed && !ky_tsdl_finish(t, error)) {
		error->line = error->column = 1;
		p.failed = true;
	}
	return p.failed ? -EINVAL : 0;
}
