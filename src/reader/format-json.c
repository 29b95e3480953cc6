/* SPDX-License-Identifier: MIT */
#include "reader/format.h"

#include <math.h>

#include "base/text.h"
#include "reader/quote.h"
#include "reader/values.h"

struct printer {
	struct ky_put put;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
	const struct ky_symbolizer *symbols; /* or NULL */
	const struct ky_item *event;
};

#define put_literal(p, to, s) ky_put_literal(ky_put_room(&(p)->put, to, sizeof(s)), s)

static char *put_code(char *to, uint32_t code)
{
	static const char letters[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	if (code < 32 && letters[code])
		return ky_put_char(ky_put_char(to, '\\'), letters[code]);
	return to + sprintf(to, "\\u%04x", code);
}

/* The character at s, which is none if len is 0. */
static char *put_character(char *to, const char *s, size_t len, uint32_t code, bool harmless)
{
	if (!len)
		return ky_put_literal(to, "\\ufffd");
	if (!harmless)
		return put_code(to, code);
	if (code == '"' || code == '\\')
		to = ky_put_char(to, '\\');
	return mempcpy(to, s, len);
}

/* Prints what is not plain at s. Returns how many bytes it is in *ret_len. */
static char *print_special(struct ky_put *p, char *to, const char *s, size_t n, size_t *ret_len)
{
	bool harmless = false;
	uint32_t code = 0;
	size_t len = ky_utf8_length(s, n, &code, &harmless);

	*ret_len = KY_MAX(len, (size_t)1);
	return put_character(ky_put_room(p, to, 16), s, len, code, harmless);
}

static const char quoted[128] = {['"'] = '"', ['\\'] = '\\'};
static const struct ky_quoting quoting = {.letters = quoted, .put_special = print_special};

static inline char *print_string(struct printer *p, char *to, const char *s, size_t n)
{
	return ky_quote_string(&quoting, &p->put, to, s, n);
}

void ky_format_json_string(struct ky_buf *out, const char *text, size_t n)
{
	struct printer p;

	ky_put_end(&p.put, print_string(&p, ky_put_begin(&p.put, out), text, n));
}

/* JSON has no words for what is no number: these are strings. */
static char *print_float(struct printer *p, char *to, const struct ky_node *n, double v)
{
	to = ky_put_room(&p->put, to, KY_REAL_TEXT);
	if (!isfinite(v))
		return stpcpy(to, isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
	return to + ky_format_real(to, v, n->size == 32);
}

static char *print_number(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	to = ky_put_room(&p->put, to, KY_PUT_NUMBER);
	return n->is_signed ? ky_put_i64(to, (int64_t)v) : ky_put_u64(to, v);
}

/* A boolean, a number, or {"value": V, "flags": ["F", ...]}. */
static char *print_bits(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	const char *label;
	uint32_t at = 0;
	bool any = false;

	if (n->show == KY_SHOW_BOOL)
		return v ? put_literal(p, to, "true") : put_literal(p, to, "false");
	if (n->show != KY_SHOW_FLAGS)
		return print_number(p, to, n, v);
	to = print_number(p, put_literal(p, to, "{\"value\": "), n, v);
	to = put_literal(p, to, ", \"flags\": [");
	for (; (label = ky_flag_label(n, v, &at)); any = true) {
		to = any ? put_literal(p, to, ", ") : to;
		to = print_string(p, to, label, strlen(label));
	}
	return put_literal(p, to, "]}");
}

/* An enumeration: {"value": V, "label": "L"}, the first label that fits, or null. */
static char *print_int(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	const char *label;
	uint32_t at = 0;

	if (ky_likely(n->is_number))
		return print_number(p, to, n, v);
	if (n->show)
		return print_bits(p, to, n, v);
	label = ky_enum_label(n, v, &at);
	to = put_literal(p, to, "{\"value\": ");
	to = print_number(p, to, n, v);
	to = put_literal(p, to, ", \"label\": ");
	to = label ? print_string(p, to, label, strlen(label)) : put_literal(p, to, "null");
	return put_literal(p, to, "}");
}

static char *print_node(struct printer *p, char *to, const struct ky_node *n);

static char *print_element(struct printer *p, char *to, const struct ky_node *elem,
	const struct ky_value *v, uint64_t i)
{
	uint64_t at = v->at + i * ky_node_stride(elem);

	if (elem->kind == KY_NODE_INT)
		return print_int(p, to, elem, ky_read_int(p->data, at, elem));
	return print_float(p, to, elem, ky_read_float(p->data, at, elem));
}

static inline char *print_text(
	struct printer *p, char *to, const struct ky_node *n, const struct ky_value *v)
{
	size_t len;
	char *text;

	if (ky_likely(n->encoding == KY_UTF_8))
		return print_string(p, to, v->text, v->n);
	text = ky_text_utf8(n, v, &len);
	to = print_string(p, to, text ? text : "", len);
	free(text);
	return to;
}

/* A string of hexadecimal digits, two for each byte. */
static char *print_blob(struct printer *p, char *to, const struct ky_value *v)
{
	to = put_literal(p, to, "\"");
	for (uint64_t i = 0; i < v->n && !ky_put_failed(&p->put); i++) {
		uint8_t byte = p->data[v->at / 8 + i];

		to = ky_put_char(ky_put_room(&p->put, to, 2), "0123456789abcdef"[byte >> 4]);
		to = ky_put_char(to, "0123456789abcdef"[byte & 15]);
	}
	return put_literal(p, to, "\"");
}

static char *print_array(struct printer *p, char *to, const struct ky_node *n)
{
	const struct ky_value *v = p->v++;

	if (n->is_text)
		return print_text(p, to, n, v);
	if (n->is_blob)
		return print_blob(p, to, v);
	to = put_literal(p, to, "[");
	for (uint64_t i = 0; i < v->n && !ky_put_failed(&p->put); i++) {
		if (i)
			to = put_literal(p, to, ", ");
		to = n->is_scalars ? print_element(p, to, n->children, v, i)
				   : print_node(p, to, n->children);
	}
	return put_literal(p, to, "]");
}

/* A string, or null if nothing is known of the address or value. */
static char *print_symbol(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	char text[KY_SYMBOL_TEXT];
	size_t len = 0;

	if (n->show == KY_SHOW_NAMED)
		len = ky_named_text(n->named, v, text, sizeof(text));
	else if (p->symbols)
		len = p->symbols->find(
			p->symbols->arg, p->event, v, n->show == KY_SHOW_RETURN, text);

	return len ? print_string(p, to, text, len) : put_literal(p, to, "null");
}

/* Prints the member NAME_symbol of a member that has an address, or an array of them. */
static char *print_symbols(struct printer *p, char *to, const char *name, const struct ky_node *n,
	const struct ky_value *v)
{
	const struct ky_node *elem = n->is_scalars ? n->children : n;

	if (elem->kind != KY_NODE_INT || elem->show < KY_SHOW_ADDRESS)
		return to;
	to = print_string(p, put_literal(p, to, ", "), name, strlen(name));
	to = put_literal(p, to - 1, "_symbol\": "); /* instead of the quote */
	if (elem == n)
		return print_symbol(p, to, n, v->u);
	to = put_literal(p, to, "[");
	for (uint64_t i = 0; i < v->n && !ky_put_failed(&p->put); i++) {
		to = i ? put_literal(p, to, ", ") : to;
		to = print_symbol(
			p, to, elem, ky_read_int(p->data, v->at + i * ky_node_stride(elem), elem));
	}
	return put_literal(p, to, "]");
}

/* Leads are short, and have room behind for a copy of a known size. */
static inline char *print_lead(
	struct printer *p, char *to, const char *lead, size_t len, bool is_next)
{
	lead = is_next ? lead : lead + strlen(", ");
	len = is_next ? len : len - strlen(", ");
	if (ky_unlikely(len > KY_LEAD_PAD))
		return ky_put_bytes(&p->put, to, lead, len);
	to = ky_put_room(&p->put, to, KY_LEAD_PAD);
	memcpy(to, lead, KY_LEAD_PAD);
	return to + len;
}

/* The members of a structure, without braces; behind others if *any. */
static char *print_members(struct printer *p, char *to, const struct ky_node *n, bool *any)
{
	for (uint32_t i = n->shown_begin; i < n->shown_end && !ky_put_failed(&p->put); i++) {
		const struct ky_node *c = &n->children[i];
		const struct ky_value *v;

		if (!c->is_shown)
			continue;
		to = print_lead(p, to, c->json_lead, c->json_lead_len, *any);
		*any = true;
		v = p->v;
		to = c->kind == KY_NODE_INT ? print_int(p, to, c, (p->v++)->u)
					    : print_node(p, to, c);
		if (ky_unlikely(p->symbols))
			to = print_symbols(p, to, c->name, c, v);
	}
	return to;
}

/* The same from the scope's bytes, which the decoder has checked. */
static char *print_steps(struct printer *p, char *to, const struct ky_node *scope,
	const uint8_t *at, const uint8_t *bytes_end, bool *any)
{
	const struct ky_step *end = scope->steps + scope->n_steps;
	struct ky_value v;

	for (const struct ky_step *s = scope->steps; s < end; at += s->bytes, s++) {
		if (ky_unlikely(s->kind == KY_STEP_HIDDEN))
			continue;
		to = print_lead(p, to, s->json_lead, s->json_lead_len, *any);
		to = ky_put_room(&p->put, to, KY_PUT_NUMBER);
		*any = true;
		if (s->kind <= KY_STEP_U64) {
			to = ky_put_u64(to, ky_step_unsigned(s, at));
		} else if (s->kind <= KY_STEP_I64) {
			to = ky_put_i64(to, ky_step_signed(s, at));
		} else if (s->kind >= KY_STEP_TEXT) {
			to = ky_quote_step(&quoting, &p->put, to, s, &at, bytes_end);
		} else {
			v = ky_flat_value(at, 0, s->node);
			p->v = &v;
			to = print_node(p, to, s->node);
		}
	}
	return to;
}

static char *print_struct(struct printer *p, char *to, const struct ky_node *n)
{
	bool any = false;

	to = put_literal(p, to, "{");
	to = print_members(p, to, n, &any);
	return put_literal(p, to, "}");
}

static char *print_node(struct printer *p, char *to, const struct ky_node *n)
{
	const struct ky_value *v;

	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		v = p->v++;
		return print_int(p, to, n, v->u);
	case KY_NODE_FLOAT:
		v = p->v++;
		return print_float(p, to, n, v->f);
	case KY_NODE_STRING:
		v = p->v++;
		return print_text(p, to, n, v);
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		return print_array(p, to, n);
	case KY_NODE_STRUCT:
		return print_struct(p, to, n);
	case KY_NODE_VARIANT:
		v = p->v++;
		return v->u == KY_NO_OPTION ? put_literal(p, to, "null")
					    : print_node(p, to, &n->children[v->u]);
	}
	return to;
}

static char *print_scope(
	struct printer *p, char *to, const struct ky_item *event, enum ky_scope scope, bool *any)
{
	if (!event->scopes[scope].node)
		return to;
	if (event->scopes[scope].bytes)
		return print_steps(p, to, event->scopes[scope].node, event->scopes[scope].bytes,
			event->scopes[scope].bytes_end, any);
	p->v = ky_item_values(event, scope);
	p->data = event->scopes[scope].data;
	return print_members(p, to, event->scopes[scope].node, any);
}

/*
 * Prints the contexts of all scopes as one object. The processor's number is not among them,
 * because it has its own member.
 */
static char *print_contexts(struct printer *p, char *to, const struct ky_item *event)
{
	const struct ky_node *packet = event->scopes[KY_SCOPE_PACKET_CONTEXT].node;
	bool any = false;

	if (!event->scopes[KY_SCOPE_EVENT_CONTEXT].node &&
		!event->scopes[KY_SCOPE_SPECIFIC_CONTEXT].node &&
		(!packet || ky_node_is_only_cpu(packet)))
		return to;
	to = put_literal(p, to, ", \"context\": {");
	if (packet && !ky_node_is_only_cpu(packet))
		to = print_scope(p, to, event, KY_SCOPE_PACKET_CONTEXT, &any);
	to = print_scope(p, to, event, KY_SCOPE_EVENT_CONTEXT, &any);
	to = print_scope(p, to, event, KY_SCOPE_SPECIFIC_CONTEXT, &any);
	return put_literal(p, to, "}");
}

static char *print_time(struct ky_format *f, struct printer *p, char *to, int64_t ns)
{
	to = ky_put_room(&p->put, to, 192);
	to = ky_put_literal(to, "\"timestamp\": ");
	to = ky_put_i64(to, ns);
	to = ky_put_literal(to, ", \"time\": \"");
	to = ky_put_iso(f, to, ns);
	return ky_put_literal(to, "\", ");
}

static char *print_cpu(struct printer *p, char *to, const struct ky_item *event)
{
	const struct ky_value *v = ky_item_values(event, KY_SCOPE_PACKET_CONTEXT);

	for (size_t i = 0; i < event->scopes[KY_SCOPE_PACKET_CONTEXT].n; i++) {
		if (v[i].node->role == KY_ROLE_CPU) {
			to = put_literal(p, to, ", \"cpu\": ");
			return ky_put_u64(ky_put_room(&p->put, to, KY_PUT_NUMBER), v[i].u);
		}
	}
	return to;
}

/* Some fields only, in the order in which they were named. */
static char *print_chosen(
	struct printer *p, char *to, const struct ky_format *f, const struct ky_item *event)
{
	const struct ky_field_ref *fields = f->fields->of_class[event->event->index];
	bool any = false;

	for (size_t i = 0; fields && i < f->fields->n; i++) {
		struct ky_field_ref field = fields[i];
		struct ky_field_value value;

		if (!ky_field_get(&field, event, &value))
			continue;
		if (any)
			to = put_literal(p, to, ", ");
		any = true;
		to = print_string(p, to, f->fields->names[i], strlen(f->fields->names[i]));
		to = put_literal(p, to, ": ");
		p->v = value.v;
		p->data = value.data;
		to = print_node(p, to, field.whole ? field.whole : value.v->node);
		if (p->symbols && !field.whole)
			to = print_symbols(p, to, f->fields->names[i], value.v->node, value.v);
	}
	return to;
}

void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	const struct ky_event_class *e = event->event;
	struct printer p;
	char *to = ky_put_begin(&p.put, out);
	bool any = false;

	p.symbols = f->symbols;
	p.event = event;
	to = put_literal(&p, to, "{");
	if (event->has_time)
		to = print_time(f, &p, to, event->ns);
	if (f->is_cut && event->has_time && event->ns < f->complete_ns)
		to = put_literal(&p, to, "\"complete\": false, ");
	to = ky_put_bytes(&p.put, to, event->trace->json_origin, event->trace->json_origin_len);
	to = put_literal(&p, to, "\"name\": ");
	to = print_string(&p, to, e->name, e->name_len);
	to = print_cpu(&p, to, event);
	if (!f->fields)
		to = print_contexts(&p, to, event);
	to = put_literal(&p, to, ", \"fields\": {");
	to = f->fields ? print_chosen(&p, to, f, event)
		       : print_scope(&p, to, event, KY_SCOPE_FIELDS, &any);
	to = put_literal(&p, to, "}");
	to = put_literal(&p, to, "}\n");
	ky_put_end(&p.put, to);
}

void ky_format_json_fields(struct ky_buf *out, const struct ky_item *event)
{
	struct printer p;
	char *to = ky_put_begin(&p.put, out);
	bool any = false;

	p.symbols = NULL;
	to = put_literal(&p, to, "{");
	to = print_scope(&p, to, event, KY_SCOPE_FIELDS, &any);
	to = put_literal(&p, to, "}");
	ky_put_end(&p.put, to);
}
