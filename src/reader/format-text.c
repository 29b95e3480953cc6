/* SPDX-License-Identifier: MIT */
/*
 * The layout was learned from what babeltrace2 2.0.4 prints; test/integration/reader-compare checks
 * it against the babeltrace2 that is installed.
 */
#include "reader/format.h"
#include "reader/quote.h"
#include "reader/values.h"

#define NS_PER_S       1000000000
#define UNKNOWN_DIGITS "?\?\?\?\?\?\?\?\?" /* no trigraphs */
#define MAX_N_LABELS   32		   /* of one value */

struct printer {
	struct ky_put put;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
	const struct ky_symbolizer *symbols; /* or NULL */
	const struct ky_item *event;
	bool safe;
};

#define put_literal(p, to, s) ky_put_literal(ky_put_room(&(p)->put, to, sizeof(s)), s)

static char *print_base(char *to, const struct ky_node *n, uint64_t v)
{
	unsigned digit = n->base == 16 ? 4 : n->base == 8 ? 3 : 1;
	unsigned size = (n->size + digit - 1) / digit * digit;
	char text[64], *at = text + sizeof(text);

	/* Negative numbers are shown as the digits of their size. */
	if (size < 64)
		v &= ((uint64_t)1 << size) - 1;
	if (n->base == 16)
		return ky_put_hex(ky_put_literal(to, "0x"), v);
	do {
		*--at = (char)('0' + (v & ((1u << digit) - 1)));
		v >>= digit;
	} while (v || (n->base == 2 && at > text + sizeof(text) - n->size));
	to = n->base == 8 ? ky_put_literal(to, "0") : ky_put_literal(to, "0b");
	return mempcpy(to, at, (size_t)(text + sizeof(text) - at));
}

static inline char *print_number(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	to = ky_put_room(&p->put, to, 80);
	if (n->base != 10)
		return print_base(to, n, v);
	return n->is_signed ? ky_put_i64(to, (int64_t)v) : ky_put_u64(to, v);
}

static char *print_float(struct printer *p, char *to, double v)
{
	to = ky_put_room(&p->put, to, 32);
	return ky_put_g(to, v);
}

/* The letter behind the backslash, or 0 when the character stands for itself. */
static const char escape_letters[256] = {['\\'] = '\\',
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

static char *put_hex(char *to, unsigned char c)
{
	to = ky_put_char(to, "0123456789abcdef"[c >> 4]);
	return ky_put_char(to, "0123456789abcdef"[c & 15]);
}

/* The character at s, escaped if need be; *ret_len: how many bytes of it were taken. */
static char *print_escaped(struct ky_put *put, char *to, const char *s, size_t n, size_t *ret_len)
{
	const struct printer *p = ky_container_of(put, struct printer, put);
	unsigned char c = (unsigned char)*s;
	char letter = escape_letters[c];
	bool harmless = true;
	uint32_t code;
	size_t len = 1;

	*ret_len = 1;
	if (letter)
		return ky_put_char(ky_put_char(to, '\\'), letter);
	if (c >= 0x80 && p->safe)
		len = ky_utf8_length(s, n, &code, &harmless);
	if (c < 0x20 || c == 0x7f || !len || !harmless)
		return put_hex(ky_put_literal(to, "\\x"), c);
	*ret_len = len;
	return mempcpy(to, s, len);
}

static const struct ky_quoting quoting = {
	.is_c = true, .letters = escape_letters, .put_special = print_escaped};

static char *print_string(struct printer *p, char *to, const char *s, size_t n)
{
	return ky_quote_string(&quoting, &p->put, to, s, n);
}

static __attribute__((noinline)) char *print_safe(
	struct printer *p, char *to, const char *s, size_t n)
{
	size_t len;

	for (size_t i = 0; i < n; i += len) {
		bool harmless = false;
		uint32_t code;

		to = ky_put_room(&p->put, to, sizeof(ky_piece));
		len = sizeof(ky_piece);
		if (n - i >= len && ky_quote_piece(&quoting, to, s + i) == len) {
			to += len;
			continue;
		}
		len = ky_utf8_length(s + i, n - i, &code, &harmless);
		if (len && harmless) {
			to = mempcpy(to, s + i, len);
		} else {
			to = put_hex(ky_put_literal(to, "\\x"), (unsigned char)s[i]);
			len = 1;
		}
	}
	return to;
}

/* Text that babeltrace2 prints as it is. */
static inline char *print_raw(struct printer *p, char *to, const char *s, size_t n)
{
	return p->safe ? print_safe(p, to, s, n) : ky_put_bytes(&p->put, to, s, n);
}

/* Labels may repeat with several ranges, and are shown once. */
static char *print_labels(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
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
			to = put_literal(p, to, ", ");
		to = print_string(p, to, label, strlen(label));
		shown[n_shown++] = label;
	}
	return n_shown ? to : put_literal(p, to, "<unknown>");
}

/* " <function+0x12 (file.c:1)>" */
static char *print_symbol(struct printer *p, char *to, uint64_t v, bool is_return)
{
	char text[KY_SYMBOL_TEXT];
	size_t n = p->symbols ? p->symbols->find(p->symbols->arg, p->event, v, is_return, text) : 0;

	if (!n)
		return to;
	to = put_literal(p, to, " <");
	to = print_raw(p, to, text, n);
	return put_literal(p, to, ">");
}

/* " <O_RDONLY|O_CLOEXEC>" */
static char *print_names(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	char text[KY_SYMBOL_TEXT];
	size_t len = ky_named_text(n->named, v, text, sizeof(text));

	if (!len)
		return to;
	to = put_literal(p, to, " <");
	to = print_raw(p, to, text, len);
	return put_literal(p, to, ">");
}

/* As babeltrace2 2.1, which reads CTF 2. */
static __attribute__((noinline)) char *print_bits(
	struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	const char *before = " { ", *label;
	bool any = false;

	if (n->show == KY_SHOW_BOOL)
		return v ? put_literal(p, to, "true") : put_literal(p, to, "false");
	to = print_number(p, to, n, v);
	if (n->show == KY_SHOW_NAMED)
		return print_names(p, to, n, v);
	if (n->show >= KY_SHOW_ADDRESS)
		return print_symbol(p, to, v, n->show == KY_SHOW_RETURN);
	for (uint32_t at = 0; n->show == KY_SHOW_FLAGS && (label = ky_flag_label(n, v, &at));) {
		to = ky_put_bytes(&p->put, to, before, strlen(before));
		to = print_string(p, to, label, strlen(label));
		before = ", ";
		any = true;
	}
	return any ? put_literal(p, to, " }") : to;
}

static inline char *print_int(struct printer *p, char *to, const struct ky_node *n, uint64_t v)
{
	if (ky_likely(n->is_number))
		return print_number(p, to, n, v);
	if (n->show)
		return print_bits(p, to, n, v);
	to = put_literal(p, to, "( ");
	to = print_labels(p, to, n, v);
	to = put_literal(p, to, " : container = ");
	to = print_number(p, to, n, v);
	return put_literal(p, to, " )");
}

static char *print_node(struct printer *p, char *to, const struct ky_node *n);

static char *print_index(struct printer *p, char *to, uint64_t i)
{
	to = ky_put_room(&p->put, to, 3 + KY_PUT_NUMBER);
	to = i ? ky_put_literal(to, ", [") : ky_put_literal(to, " [");
	to = ky_put_u64(to, i);
	return put_literal(p, to, "] = ");
}

static char *print_numbers(
	struct printer *p, char *to, const struct ky_node *elem, const struct ky_value *v)
{
	uint64_t at = v->at;

	for (uint64_t i = 0; i < v->n && !ky_put_failed(&p->put); i++, at += ky_node_stride(elem)) {
		to = print_index(p, to, i);
		if (elem->kind == KY_NODE_INT)
			to = print_int(p, to, elem, ky_read_int(p->data, at, elem));
		else
			to = print_float(p, to, ky_read_float(p->data, at, elem));
	}
	return to;
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

static char *print_blob(struct printer *p, char *to, const struct ky_value *v)
{
	to = put_literal(p, to, "{ ");
	for (uint64_t i = 0; i < v->n && !ky_put_failed(&p->put); i++) {
		to = put_hex(ky_put_room(&p->put, to, 4), p->data[v->at / 8 + i]);
		to = ky_put_char(to, ' ');
	}
	return put_literal(p, to, "}");
}

static char *print_array(struct printer *p, char *to, const struct ky_node *n)
{
	const struct ky_value *v = p->v++;

	if (n->is_text)
		return print_text(p, to, n, v);
	if (n->is_blob)
		return print_blob(p, to, v);
	to = put_literal(p, to, "[");
	if (n->is_scalars)
		to = print_numbers(p, to, n->children, v);
	for (uint64_t i = 0; i < v->n && !n->is_scalars && !ky_put_failed(&p->put); i++) {
		to = print_index(p, to, i);
		to = print_node(p, to, n->children);
	}
	return put_literal(p, to, " ]");
}

/*
 * Leads are short, and have room behind for a copy of a known size. They contain the name of a
 * field, which is any text in CTF 2.
 */
static inline char *print_lead(struct printer *p, char *to, const char *lead, size_t n)
{
	if (ky_unlikely(n > KY_LEAD_PAD))
		return print_raw(p, to, lead, n);
	to = ky_put_room(&p->put, to, KY_LEAD_PAD);
	if (p->safe && ky_unlikely(ky_quote_piece(&quoting, to, lead) < n))
		return print_safe(p, to, lead, n);
	memcpy(to, lead, KY_LEAD_PAD);
	return to + n;
}

static char *print_struct(struct printer *p, char *to, const struct ky_node *n)
{
	to = put_literal(p, to, "{");
	for (uint32_t i = n->shown_begin; i < n->shown_end && !ky_put_failed(&p->put); i++) {
		const struct ky_node *c = &n->children[i];

		if (!c->is_shown)
			continue;
		to = print_lead(p, to, c->lead, c->lead_len);
		to = c->kind == KY_NODE_INT ? print_int(p, to, c, (p->v++)->u)
					    : print_node(p, to, c);
	}
	return put_literal(p, to, " }");
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
		return print_float(p, to, v->f);
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
		if (v->u == KY_NO_OPTION)
			return put_literal(p, to, "<none>");
		to = put_literal(p, to, "{ ");
		to = print_node(p, to, &n->children[v->u]);
		return put_literal(p, to, " }");
	}
	return to;
}

/* [HH:MM:SS.nnnnnnnnn] (+D.nnnnnnnnn) */
static char *print_time(struct ky_format *f, struct printer *p, char *to, int64_t ns)
{
	uint64_t delta = ns > f->last_ns ? (uint64_t)ns - (uint64_t)f->last_ns : 0;

	to = ky_put_room(&p->put, to, 128);
	to = ky_put_char(to, '[');
	to = ky_put_time(f, to, ns);
	to = ky_put_literal(to, "] (+");
	if (f->had_time) {
		to = ky_put_u64(to, delta / NS_PER_S);
		to = ky_put_fraction(to, (uint32_t)(delta % NS_PER_S));
	} else {
		to = ky_put_literal(to, "?." UNKNOWN_DIGITS);
	}
	f->last_ns = ns;
	f->had_time = true;
	return ky_put_literal(to, ") ");
}

/* A scope from its bytes, which the decoder has checked. */
static char *print_steps(struct printer *p, char *to, const struct ky_node *scope,
	const uint8_t *at, const uint8_t *bytes_end)
{
	const struct ky_step *end = scope->steps + scope->n_steps;
	struct ky_value v;

	to = put_literal(p, to, "{");
	for (const struct ky_step *s = scope->steps; s < end; at += s->bytes, s++) {
		if (ky_unlikely(s->kind == KY_STEP_HIDDEN))
			continue;
		to = print_lead(p, to, s->lead, s->lead_len);
		to = ky_put_room(&p->put, to, KY_PUT_NUMBER);
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
	return put_literal(p, to, " }");
}

/* All contexts and fields. */
static char *print_scopes(struct printer *p, char *to, const struct ky_item *event)
{
	bool any = false;

	for (int i = 0; i < KY_N_SCOPES; i++) {
		if (!event->scopes[i].node)
			continue;
		if (any)
			to = put_literal(p, to, ", ");
		any = true;
		if (event->scopes[i].bytes) {
			to = print_steps(p, to, event->scopes[i].node, event->scopes[i].bytes,
				event->scopes[i].bytes_end);
			continue;
		}
		p->v = ky_item_values(event, (enum ky_scope)i);
		p->data = event->scopes[i].data;
		to = print_struct(p, to, event->scopes[i].node);
	}
	return to;
}

/* Some fields only, in the order in which they were named. */
static char *print_chosen(
	struct printer *p, char *to, const struct ky_format *f, const struct ky_item *event)
{
	const struct ky_field_ref *fields = f->fields->of_class[event->event->index];
	bool any = false;

	to = put_literal(p, to, "{");
	for (size_t i = 0; fields && i < f->fields->n; i++) {
		struct ky_field_ref field = fields[i];
		struct ky_field_value value;

		if (!ky_field_get(&field, event, &value))
			continue;
		to = any ? put_literal(p, to, ", ") : put_literal(p, to, " ");
		any = true;
		to = print_raw(p, to, f->fields->names[i], strlen(f->fields->names[i]));
		to = put_literal(p, to, " = ");
		p->v = value.v;
		p->data = value.data;
		to = print_node(p, to, field.whole ? field.whole : value.v->node);
	}
	return put_literal(p, to, " }");
}

void ky_format_fields(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	struct printer p;
	char *to = ky_put_begin(&p.put, out);

	p.safe = f->safe;
	p.symbols = f->symbols;
	p.event = event;
	ky_put_end(&p.put, print_scopes(&p, to, event));
}

void ky_format_value(struct ky_buf *out, const struct ky_value *v, const uint8_t *data)
{
	struct printer p;
	char *to = ky_put_begin(&p.put, out);

	p.safe = false;
	p.symbols = NULL;
	p.v = v;
	p.data = data;
	ky_put_end(&p.put, print_node(&p, to, v->node));
}

void ky_format_text(struct ky_format *f, struct ky_buf *out, const struct ky_item *event)
{
	struct printer p;
	const struct ky_trace *trace = event->trace;
	const struct ky_event_class *e = event->event;
	char *to = ky_put_begin(&p.put, out);

	p.safe = f->safe;
	p.symbols = f->symbols;
	p.event = event;
	if (f->colour)
		to = put_literal(&p, to, "\033[2m");
	if (event->has_time)
		to = print_time(f, &p, to, event->ns);
	if (f->colour)
		to = put_literal(&p, to, "\033[0m");
	to = print_raw(&p, to, trace->origin, trace->origin_len);
	if (f->colour)
		to = put_literal(&p, to, "\033[1m");
	to = print_raw(&p, to, e->name, e->name_len);
	if (f->colour)
		to = put_literal(&p, to, "\033[0m");
	to = put_literal(&p, to, ": ");
	to = f->fields ? print_chosen(&p, to, f, event) : print_scopes(&p, to, event);
	to = put_literal(&p, to, "\n");
	ky_put_end(&p.put, to);
}

static char *print_range(
	struct ky_format *f, struct printer *p, char *to, const struct ky_item *lost)
{
	if (!lost->has_time)
		return put_literal(p, to, "(unknown time range)");
	to = ky_put_room(&p->put, to, 192);
	to = ky_put_literal(to, "between [");
	to = ky_put_time(f, to, lost->lost.begin_ns);
	to = ky_put_literal(to, "] and [");
	to = ky_put_time(f, to, lost->lost.end_ns);
	return ky_put_char(to, ']');
}

static char *print_uuid(struct printer *p, char *to, const struct ky_tsdl *t)
{
	to = t->has_uuid ? put_literal(p, to, "(UUID: ") : put_literal(p, to, "(no UUID");
	to = ky_put_room(&p->put, to, 64);
	for (int i = 0; t->has_uuid && i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			to = ky_put_char(to, '-');
		to = put_hex(to, t->uuid[i]);
	}
	return ky_put_char(to, ')');
}

static char *print_decimal(struct printer *p, char *to, uint64_t v)
{
	return ky_put_u64(ky_put_room(&p->put, to, KY_PUT_NUMBER), v);
}

/* A trace in several directories has the name of its host. */
static char *print_trace(struct printer *p, char *to, const struct ky_trace *t)
{
	const struct ky_env *host = ky_tsdl_env(&t->tsdl, "hostname");
	const char *name = t->name;

	if (t->is_chunk)
		name = host && host->text ? host->text : "";
	return print_raw(p, to, name, strlen(name));
}

void ky_format_lost(struct ky_format *f, struct ky_buf *out, const struct ky_item *lost)
{
	const struct ky_file *file = lost->file;
	struct printer p;
	char *to = ky_put_begin(&p.put, out);

	p.safe = f->safe;
	to = put_literal(&p, to, "WARNING: Tracer discarded ");
	to = print_decimal(&p, to, lost->lost.n);
	to = lost->kind == KY_ITEM_LOST_EVENTS ? put_literal(&p, to, " event")
					       : put_literal(&p, to, " packet");
	to = lost->lost.n == 1 ? put_literal(&p, to, " ") : put_literal(&p, to, "s ");
	to = print_range(f, &p, to, lost);
	to = put_literal(&p, to, " in trace \"");
	to = print_trace(&p, to, file->trace);
	to = put_literal(&p, to, "\" ");
	to = print_uuid(&p, to, &file->trace->tsdl);
	to = put_literal(&p, to, " within stream \"");
	to = print_raw(&p, to, file->path, strlen(file->path));
	to = put_literal(&p, to, "\" (stream class ID: ");
	to = print_decimal(&p, to, lost->class->id);
	to = put_literal(&p, to, ", stream ID: ");
	to = print_decimal(&p, to, file->instance);
	to = put_literal(&p, to, ").\n");
	ky_put_end(&p.put, to);
}
