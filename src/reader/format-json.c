/* SPDX-License-Identifier: MIT */
#include "reader/format.h"

#include <math.h>

#include "base/utf8.h"

#define REPLACEMENT "\\ufffd"

struct printer {
	struct ky_buf *out;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
};

static void puts_text(struct printer *p, const char *s)
{
	ky_buf_append(p->out, s, strlen(s));
}

static void print_code(struct ky_buf *out, uint32_t code)
{
	static const char letters[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	if (code < 32 && letters[code])
		ky_buf_printf(out, "\\%c", letters[code]);
	else
		ky_buf_printf(out, "\\u%04x", code);
}

void ky_format_json_string(struct ky_buf *out, const char *text, size_t n)
{
	size_t len;

	ky_format_char(out, '"');
	for (size_t i = 0; i < n; i += len) {
		bool harmless = false;
		uint32_t code = 0;

		len = ky_utf8_length(text + i, n - i, &code, &harmless);
		if (!len)
			ky_buf_append(out, REPLACEMENT, strlen(REPLACEMENT));
		else if (!harmless)
			print_code(out, code);
		else if (code == '"' || code == '\\')
			ky_buf_printf(out, "\\%c", (char)code);
		else
			ky_buf_append(out, text + i, len);
		len = KY_MAX(len, (size_t)1);
	}
	ky_format_char(out, '"');
}

static void print_string(struct printer *p, const char *s)
{
	ky_format_json_string(p->out, s, strlen(s));
}

/* The fewest digits that read back as the same; those of a float need not be a double's. */
static void format_float(char *text, size_t size, double v, bool is_single)
{
	int most = is_single ? 9 : 17;

	for (int digits = is_single ? 6 : 15; digits <= most; digits++) {
		snprintf(text, size, "%.*g", digits, v);
		if (is_single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v)
			break;
	}
}

/* JSON has no words for what is no number: these are strings. */
static void print_float(struct printer *p, const struct ky_node *n, double v)
{
	char text[40];

	if (!isfinite(v)) {
		puts_text(p, isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
		return;
	}
	format_float(text, sizeof(text), v, n->size == 32);
	puts_text(p, text);
}

static void print_number(struct printer *p, const struct ky_node *n, uint64_t v)
{
	if (n->is_signed)
		ky_format_i64(p->out, (int64_t)v);
	else
		ky_format_u64(p->out, v);
}

/* An enumeration: {"value": V, "label": "L"}, the first label that fits, or null. */
static void print_int(struct printer *p, const struct ky_node *n, uint64_t v)
{
	const char *label;
	uint32_t at = 0;

	if (!n->is_enum) {
		print_number(p, n, v);
		return;
	}
	label = ky_enum_label(n, v, &at);
	puts_text(p, "{\"value\": ");
	print_number(p, n, v);
	puts_text(p, ", \"label\": ");
	if (label)
		print_string(p, label);
	else
		puts_text(p, "null");
	puts_text(p, "}");
}

static void print_node(struct printer *p, const struct ky_node *n);

static void print_element(
	struct printer *p, const struct ky_node *elem, const struct ky_value *v, uint64_t i)
{
	uint64_t at = v->at + i * ky_node_stride(elem);

	if (elem->kind == KY_NODE_INT)
		print_int(p, elem, ky_read_int(p->data, at, elem));
	else
		print_float(p, elem, ky_read_float(p->data, at, elem));
}

static void print_array(struct printer *p, const struct ky_node *n)
{
	const struct ky_value *v = p->v++;

	if (n->is_text) {
		ky_format_json_string(p->out, v->text, v->n);
		return;
	}
	ky_format_char(p->out, '[');
	for (uint64_t i = 0; i < v->n; i++) {
		if (i)
			puts_text(p, ", ");
		if (n->is_scalars)
			print_element(p, n->children, v, i);
		else
			print_node(p, n->children);
	}
	ky_format_char(p->out, ']');
}

static void print_members(struct printer *p, const struct ky_node *n, const char *before)
{
	for (uint32_t i = 0; i < n->n; i++) {
		if (!n->children[i].is_shown)
			continue;
		puts_text(p, before);
		print_string(p, n->children[i].name);
		puts_text(p, ": ");
		print_node(p, &n->children[i]);
		before = ", ";
	}
}

static void print_node(struct printer *p, const struct ky_node *n)
{
	const struct ky_value *v;

	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		v = p->v++;
		print_int(p, n, v->u);
		break;
	case KY_NODE_FLOAT:
		v = p->v++;
		print_float(p, n, v->f);
		break;
	case KY_NODE_STRING:
		v = p->v++;
		ky_format_json_string(p->out, v->text, v->n);
		break;
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		print_array(p, n);
		break;
	case KY_NODE_STRUCT:
		ky_format_char(p->out, '{');
		print_members(p, n, "");
		ky_format_char(p->out, '}');
		break;
	case KY_NODE_VARIANT:
		v = p->v++;
		print_node(p, &n->children[v->u]);
		break;
	}
}

/* , "name": value; nothing when the scope is not there. */
static void print_scope(
	struct printer *p, const struct ky_item *event, enum ky_scope scope, const char *name)
{
	if (!event->scopes[scope].node)
		return;
	ky_buf_printf(p->out, ", \"%s\": ", name);
	p->v = event->scopes[scope].values->v;
	print_node(p, event->scopes[scope].node);
}

void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	struct printer p = {.out = out, .data = event->data};

	puts_text(&p, "{");
	if (event->has_time) {
		puts_text(&p, "\"timestamp\": ");
		ky_format_i64(out, event->ns);
		puts_text(&p, ", \"time\": \"");
		ky_format_iso(out, event->ns);
		puts_text(&p, "\", ");
	}
	puts_text(&p, "\"name\": ");
	print_string(&p, event->event->name ? event->event->name : "");
	if (event->has_cpu)
		ky_buf_printf(out, ", \"cpu\": %llu", (unsigned long long)event->cpu);
	print_scope(&p, event, KY_SCOPE_EVENT_CONTEXT, "context");
	print_scope(&p, event, KY_SCOPE_SPECIFIC_CONTEXT, "event_context");
	if (event->scopes[KY_SCOPE_FIELDS].node)
		print_scope(&p, event, KY_SCOPE_FIELDS, "fields");
	else
		puts_text(&p, ", \"fields\": {}");
	puts_text(&p, "}\n");
}
