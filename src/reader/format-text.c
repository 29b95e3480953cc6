/* SPDX-License-Identifier: MIT */
/*
 * The layout was learned from what babeltrace2 2.0.4 prints; test/integration/reader-compare checks
 * it against the babeltrace2 that is installed.
 */
#include "reader/format.h"

#include "base/utf8.h"

#define NS_PER_S       1000000000
#define UNKNOWN_DIGITS "?\?\?\?\?\?\?\?\?" /* no trigraphs */
#define MAX_N_LABELS   32		   /* of one value */

struct printer {
	struct ky_buf *out;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
	bool safe;
};

static void puts_text(struct printer *p, const char *s)
{
	ky_buf_append(p->out, s, strlen(s));
}

static void print_base(struct printer *p, const struct ky_node *n, uint64_t v)
{
	unsigned digit = n->base == 16 ? 4 : n->base == 8 ? 3 : 1;
	unsigned size = (n->size + digit - 1) / digit * digit;
	const char *prefix = n->base == 16 ? "0x" : n->base == 8 ? "0" : "0b";
	char text[64], *to = text + sizeof(text);

	/* Negative numbers are shown as the digits of their size. */
	if (size < 64)
		v &= ((uint64_t)1 << size) - 1;
	do {
		*--to = "0123456789ABCDEF"[v & ((1u << digit) - 1)];
		v >>= digit;
	} while (v || (n->base == 2 && to > text + sizeof(text) - n->size));
	puts_text(p, prefix);
	ky_buf_append(p->out, to, (size_t)(text + sizeof(text) - to));
}

static void print_number(struct printer *p, const struct ky_node *n, uint64_t v)
{
	if (n->base != 10)
		print_base(p, n, v);
	else if (n->is_signed)
		ky_format_i64(p->out, (int64_t)v);
	else
		ky_format_u64(p->out, v);
}

static void print_float(struct printer *p, double v)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%g", v);

	ky_buf_append(p->out, text, (size_t)n);
}

/* The letter behind the backslash, or 0 when the character stands for itself. */
static char escape_letter(unsigned char c)
{
	static const char letters[256] = {['\\'] = '\\',
		['\''] = '\'',
		['"'] = '"',
		['?'] = '?',
		['\a'] = 'a',
		['\b'] = 'b',
		['\033'] = 'e',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
		['\v'] = 'v'};

	return letters[c];
}

/* The character at s, escaped if need be; how many bytes of it were taken. */
static size_t print_escaped(struct printer *p, const char *s, size_t n)
{
	unsigned char c = (unsigned char)*s;
	char letter = escape_letter(c);
	bool harmless = true;
	uint32_t code;
	size_t len = 1;

	if (letter) {
		ky_format_char(p->out, '\\');
		ky_format_char(p->out, letter);
		return 1;
	}
	if (c >= 0x80 && p->safe)
		len = ky_utf8_length(s, n, &code, &harmless);
	if (c < 0x20 || c == 0x7f || !len || !harmless)
		ky_buf_printf(p->out, "\\x%02x", c);
	else
		ky_buf_append(p->out, s, len);
	return len && harmless ? len : 1;
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && !escape_letter(c);
}

static void print_string(struct printer *p, const char *s, size_t n)
{
	size_t i = 0;

	ky_format_char(p->out, '"');
	while (i < n) {
		size_t start = i;

		while (i < n && is_plain((unsigned char)s[i]))
			i++;
		ky_buf_append(p->out, s + start, i - start);
		if (i < n)
			i += print_escaped(p, s + i, n - i);
	}
	ky_format_char(p->out, '"');
}

/* Text that babeltrace2 prints as it is. */
static void print_raw(struct printer *p, const char *s)
{
	size_t n = strlen(s), len;

	for (size_t i = 0; i < n && p->safe; i += KY_MAX(len, (size_t)1)) {
		bool harmless = false;
		uint32_t code;

		len = ky_utf8_length(s + i, n - i, &code, &harmless);
		if (len && harmless)
			ky_buf_append(p->out, s + i, len);
		else
			ky_buf_printf(p->out, "\\x%02x", (unsigned char)s[i]);
		len = harmless ? len : 1;
	}
	if (!p->safe)
		ky_buf_append(p->out, s, n);
}

/* Labels may repeat with several ranges, and are shown once. */
static void print_labels(struct printer *p, const struct ky_node *n, uint64_t v)
{
	const char *shown[MAX_N_LABELS], *label;
	uint32_t at = 0, n_shown = 0;

	while (n_shown < MAX_N_LABELS && (label = ky_enum_label(n, v, &at))) {
		uint32_t i = 0;

		while (i < n_shown && strcmp(shown[i], label))
			i++;
		if (i < n_shown)
			continue;
		if (n_shown)
			puts_text(p, ", ");
		print_string(p, label, strlen(label));
		shown[n_shown++] = label;
	}
	if (!n_shown)
		puts_text(p, "<unknown>");
}

static void print_int(struct printer *p, const struct ky_node *n, uint64_t v)
{
	if (!n->is_enum) {
		print_number(p, n, v);
		return;
	}
	puts_text(p, "( ");
	print_labels(p, n, v);
	puts_text(p, " : container = ");
	print_number(p, n, v);
	puts_text(p, " )");
}

static void print_node(struct printer *p, const struct ky_node *n);

static void print_index(struct printer *p, uint64_t i)
{
	puts_text(p, i ? ", [" : " [");
	ky_format_u64(p->out, i);
	puts_text(p, "] = ");
}

static void print_numbers(struct printer *p, const struct ky_node *elem, const struct ky_value *v)
{
	uint64_t at = v->at;

	for (uint64_t i = 0; i < v->n; i++, at += ky_node_stride(elem)) {
		print_index(p, i);
		if (elem->kind == KY_NODE_INT)
			print_int(p, elem, ky_read_int(p->data, at, elem));
		else
			print_float(p, ky_read_float(p->data, at, elem));
	}
}

static void print_array(struct printer *p, const struct ky_node *n)
{
	const struct ky_value *v = p->v++;

	if (n->is_text) {
		print_string(p, v->text, v->n);
		return;
	}
	ky_format_char(p->out, '[');
	if (n->is_scalars)
		print_numbers(p, n->children, v);
	for (uint64_t i = 0; i < v->n && !n->is_scalars; i++) {
		print_index(p, i);
		print_node(p, n->children);
	}
	puts_text(p, " ]");
}

static void print_struct(struct printer *p, const struct ky_node *n)
{
	const char *before = " ";

	ky_format_char(p->out, '{');
	for (uint32_t i = 0; i < n->n; i++) {
		if (!n->children[i].is_shown)
			continue;
		puts_text(p, before);
		puts_text(p, n->children[i].name);
		puts_text(p, " = ");
		print_node(p, &n->children[i]);
		before = ", ";
	}
	puts_text(p, " }");
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
		print_float(p, v->f);
		break;
	case KY_NODE_STRING:
		v = p->v++;
		print_string(p, v->text, v->n);
		break;
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		print_array(p, n);
		break;
	case KY_NODE_STRUCT:
		print_struct(p, n);
		break;
	case KY_NODE_VARIANT:
		v = p->v++;
		puts_text(p, "{ ");
		print_node(p, &n->children[v->u]);
		puts_text(p, " }");
		break;
	}
}

static void print_delta(struct ky_format *f, struct printer *p, int64_t ns)
{
	uint64_t delta = f->had_time && ns > f->last_ns ? (uint64_t)ns - (uint64_t)f->last_ns : 0;

	if (f->had_time) {
		puts_text(p, "(+");
		ky_format_u64(p->out, delta / NS_PER_S);
		ky_format_fraction(p->out, (uint32_t)(delta % NS_PER_S));
		puts_text(p, ") ");
	} else {
		puts_text(p, "(+?." UNKNOWN_DIGITS ") ");
	}
	f->last_ns = ns;
	f->had_time = true;
}

static const struct ky_trace *trace_of(const struct ky_item *item)
{
	const struct ky_stream *s = item->stream;

	return s->files[KY_MIN(s->file, s->n_files - 1)].trace;
}

void ky_format_text(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	struct printer p = {.out = out, .data = event->data, .safe = f->safe};
	const char *before = "";

	if (event->has_time) {
		ky_format_char(out, '[');
		ky_format_time(f, out, event->ns);
		puts_text(&p, "] ");
		print_delta(f, &p, event->ns);
	}
	print_raw(&p, trace_of(event)->origin);
	print_raw(&p, event->event->name ? event->event->name : "<unknown>");
	puts_text(&p, ": ");
	for (int i = 0; i < KY_N_SCOPES; i++) {
		if (!event->scopes[i].node)
			continue;
		puts_text(&p, before);
		p.v = event->scopes[i].values->v;
		print_node(&p, event->scopes[i].node);
		before = ", ";
	}
	ky_format_char(out, '\n');
}

static void print_range(struct ky_format *f, struct printer *p, const struct ky_item *lost)
{
	if (!lost->has_time) {
		puts_text(p, "(unknown time range)");
		return;
	}
	puts_text(p, "between [");
	ky_format_time(f, p->out, lost->lost.begin_ns);
	puts_text(p, "] and [");
	ky_format_time(f, p->out, lost->lost.end_ns);
	ky_format_char(p->out, ']');
}

static void print_uuid(struct printer *p, const struct ky_tsdl *t)
{
	puts_text(p, t->has_uuid ? "(UUID: " : "(no UUID");
	for (int i = 0; t->has_uuid && i < 16; i++)
		ky_buf_printf(p->out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			t->uuid[i]);
	puts_text(p, ")");
}

void ky_format_lost(struct ky_format *f, struct ky_buf *out, const struct ky_item *lost)
{
	const struct ky_stream *s = lost->stream;
	const struct ky_file *file = &s->files[KY_MIN(s->file, s->n_files - 1)];
	struct printer p = {.out = out, .safe = f->safe};
	bool events = lost->kind == KY_ITEM_LOST_EVENTS;

	ky_buf_printf(out, "WARNING: Tracer discarded %llu %s%s ", (unsigned long long)lost->lost.n,
		events ? "event" : "packet", lost->lost.n == 1 ? "" : "s");
	print_range(f, &p, lost);
	puts_text(&p, " in trace \"");
	print_raw(&p, file->trace->name);
	puts_text(&p, "\" ");
	print_uuid(&p, &file->trace->tsdl);
	puts_text(&p, " within stream \"");
	print_raw(&p, file->path);
	ky_buf_printf(out, "\" (stream class ID: %llu, ", (unsigned long long)s->class->id);
	if (file->has_instance)
		ky_buf_printf(out, "stream ID: %llu).\n", (unsigned long long)file->instance);
	else
		puts_text(&p, "no stream ID).\n");
}
