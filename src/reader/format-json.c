/* SPDX-License-Identifier: MIT */
#include "reader/format.h"

#include <math.h>

#include "base/utf8.h"

struct printer {
	struct ky_put put;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
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

static char *print_string(struct printer *p, char *to, const char *s, size_t n)
{
	size_t len;

	to = put_literal(p, to, "\"");
	for (size_t i = 0; i < n; i += KY_MAX(len, (size_t)1)) {
		bool harmless = false;
		uint32_t code = 0;

		len = ky_utf8_length(s + i, n - i, &code, &harmless);
		to = ky_put_room(&p->put, to, 16);
		to = put_character(to, s + i, len, code, harmless);
	}
	return put_literal(p, to, "\"");
}

void ky_format_json_string(struct ky_buf *out, const char *text, size_t n)
{
	struct printer p;

	ky_put_end(&p.put, print_string(&p, ky_put_begin(&p.put, out), text, n));
}

/* The fewest digits that read back as the same; those of a float need not be a double's. */
static int format_float(char *text, size_t size, double v, bool is_single)
{
	int most = is_single ? 9 : 17, n = 0;

	for (int digits = is_single ? 6 : 15; digits <= most; digits++) {
		n = snprintf(text, size, "%.*g", digits, v);
		if (is_single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
			break;
	}
	return n;
}

/* JSON has no words for what is no number: these are strings. */
static char *print_float(struct printer *p, char *to, const struct ky_node *n, double v)
{
	to = ky_put_room(&p->put, to, 40);
	if (!isfinite(v))
		return stpcpy(to, isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
	return to + format_float(to, 40, v, n->size == 32);
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
	if (n->show == KY_SHOW_BITS)
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
	for (uint64_t i = 0; i < v->n; i++) {
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
	for (uint64_t i = 0; i < v->n; i++) {
		if (i)
			to = put_literal(p, to, ", ");
		to = n->is_scalars ? print_element(p, to, n->children, v, i)
				   : print_node(p, to, n->children);
	}
	return put_literal(p, to, "]");
}

static char *print_struct(struct printer *p, char *to, const struct ky_node *n)
{
	bool any = false;

	to = put_literal(p, to, "{");
	for (uint32_t i = 0; i < n->n; i++) {
		const struct ky_node *c = &n->children[i];

		if (!c->is_shown)
			continue;
		if (any)
			to = put_literal(p, to, ", ");
		to = print_string(p, to, c->name, strlen(c->name));
		to = put_literal(p, to, ": ");
		to = print_node(p, to, c);
		any = true;
	}
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

/* The value; {} when the scope is not there. */
static char *print_scope(
	struct printer *p, char *to, const struct ky_item *event, enum ky_scope scope)
{
	if (!event->scopes[scope].node)
		return put_literal(p, to, "{}");
	p->v = ky_item_values(event, scope);
	p->data = event->scopes[scope].data;
	return print_struct(p, to, event->scopes[scope].node);
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

/* The fields of the packet, if there are others than the processor. */
static char *print_packet(struct printer *p, char *to, const struct ky_item *event)
{
	const struct ky_node *node = event->scopes[KY_SCOPE_PACKET_CONTEXT].node;
	bool any = false;

	for (uint32_t i = 0; node && i < node->n && !any; i++)
		any = node->children[i].is_shown && node->children[i].role != KY_ROLE_CPU;
	if (!any)
		return to;
	to = put_literal(p, to, ", \"packet_context\": ");
	return print_scope(p, to, event, KY_SCOPE_PACKET_CONTEXT);
}

void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	const struct ky_event_class *e = event->event;
	struct printer p;
	char *to = ky_put_begin(&p.put, out);

	to = put_literal(&p, to, "{");
	if (event->has_time)
		to = print_time(f, &p, to, event->ns);
	if (f->is_cut && event->has_time && event->ns < f->complete_ns)
		to = put_literal(&p, to, "\"complete\": false, ");
	to = ky_put_bytes(&p.put, to, event->trace->json_origin, event->trace->json_origin_len);
	to = put_literal(&p, to, "\"name\": ");
	to = print_string(&p, to, e->name ? e->name : "", e->name_len);
	to = print_cpu(&p, to, event);
	to = print_packet(&p, to, event);
	if (event->scopes[KY_SCOPE_EVENT_CONTEXT].node) {
		to = put_literal(&p, to, ", \"context\": ");
		to = print_scope(&p, to, event, KY_SCOPE_EVENT_CONTEXT);
	}
	if (event->scopes[KY_SCOPE_SPECIFIC_CONTEXT].node) {
		to = put_literal(&p, to, ", \"event_context\": ");
		to = print_scope(&p, to, event, KY_SCOPE_SPECIFIC_CONTEXT);
	}
	to = put_literal(&p, to, ", \"fields\": ");
	to = print_scope(&p, to, event, KY_SCOPE_FIELDS);
	to = put_literal(&p, to, "}\n");
	ky_put_end(&p.put, to);
}
