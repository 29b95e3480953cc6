/* SPDX-License-Identifier: MIT */
/*
 * Recursive descent. The first error sticks: the current token becomes the end of the text, for
 * ever, so that every loop ends, and what is under construction is abandoned with the arena.
 *
 * Names of types live in one hash table; a scope is a mark in the stack of declarations, and
 * leaving it takes what was declared since out of the table.
 */
#include "reader/tsdl.h"

#include "reader/tsdl-lex.h"

#include <stdarg.h>

#define N_BUCKETS    4096u
#define MAX_ALIGN    ((uint64_t)1 << 16)
#define MAX_NAME_LEN 1024

/* Name spaces of types: `struct x` and `x` are different types. */
enum { NAME_ALIAS, NAME_STRUCT, NAME_VARIANT, NAME_ENUM };

struct name {
	struct name *next;  /* in its bucket */
	struct name *older; /* declared before */
	const char *text;
	const struct ky_type *type;
	uint32_t bucket;
	int space;
};

struct parser {
	struct ky_lexer lexer;
	struct ky_token token;
	struct ky_arena *arena;
	struct ky_tsdl *tsdl;
	struct ky_tsdl_error *error;
	bool failed;
	int depth;
	struct name *newest;
	struct name **buckets;
	size_t cap_env, cap_clocks, cap_streams, cap_events;
};

/* --- errors and tokens --- */

static void KY_PRINTF(2, 3) fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	p->failed = true;
	p->error->line = p->token.line;
	p->error->column = p->token.column;
	va_start(ap, fmt);
	vsnprintf(p->error->text, sizeof(p->error->text), fmt, ap);
	va_end(ap);
	p->token.kind = KY_TOKEN_END;
}

static void *alloc(struct parser *p, size_t n)
{
	void *m = ky_arena_alloc(p->arena, n);

	if (!m)
		fail(p, "the metadata is too large");
	return m;
}

/* Room for one more in an array of the arena; the new element is zero. NULL after an error. */
static void *grow(struct parser *p, void *array, size_t *n, size_t *cap, size_t size)
{
	void **at = array;

	if (*n == *cap) {
		size_t new_cap = *cap ? 2 * *cap : 8;
		void *bigger = alloc(p, new_cap * size);

		if (!bigger)
			return NULL;
		if (*n)
			memcpy(bigger, *at, *n * size);
		*at = bigger;
		*cap = new_cap;
	}
	return (char *)*at + (*n)++ * size;
}

static void next(struct parser *p)
{
	if (p->failed)
		return;
	ky_lexer_next(&p->lexer, &p->token);
	if (p->lexer.error)
		fail(p, "%s", p->lexer.error);
}

static bool at(const struct parser *p, int kind)
{
	return p->token.kind == kind;
}

static bool at_word(const struct parser *p, const char *word)
{
	return at(p, KY_TOKEN_WORD) && !strcmp(p->token.text, word);
}

static bool accept(struct parser *p, int kind)
{
	if (!at(p, kind))
		return false;
	next(p);
	return true;
}

static bool accept_word(struct parser *p, const char *word)
{
	if (!at_word(p, word))
		return false;
	next(p);
	return true;
}

static void expect(struct parser *p, int kind, const char *what)
{
	if (!accept(p, kind))
		fail(p, "expected %s", what);
}

/* The word's text, or NULL after an error. */
static const char *expect_word(struct parser *p, const char *what)
{
	const char *text = p->token.text;

	if (!at(p, KY_TOKEN_WORD)) {
		fail(p, "expected %s", what);
		return NULL;
	}
	if (strlen(text) > MAX_NAME_LEN)
		fail(p, "the name is too long");
	next(p);
	return text;
}

/* a.b.c as one text. */
static const char *parse_path(struct parser *p)
{
	char text[MAX_NAME_LEN];
	size_t len = 0;

	do {
		const char *word = expect_word(p, "a name");
		int n = word ? snprintf(
				       text + len, sizeof(text) - len, "%s%s", len ? "." : "", word)
			     : 0;

		if ((size_t)n >= sizeof(text) - len)
			fail(p, "the name is too long");
		if (p->failed)
			return NULL;
		len += (size_t)n;
	} while (accept(p, '.'));
	return ky_arena_strndup(p->arena, text, len);
}

/* --- names of types --- */

static uint32_t bucket_of(const char *text, int space)
{
	uint32_t h = 2166136261u + (uint32_t)space;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return (h ^ h >> 15) % N_BUCKETS;
}

static void declare(struct parser *p, int space, const char *text, const struct ky_type *type)
{
	struct name *n = p->failed || !text ? NULL : alloc(p, sizeof(*n));

	if (!n)
		return;
	*n = (struct name){.text = text,
		.type = type,
		.space = space,
		.bucket = bucket_of(text, space),
		.older = p->newest};
	n->next = p->buckets[n->bucket];
	p->buckets[n->bucket] = n;
	p->newest = n;
}

static const struct ky_type *find_type(const struct parser *p, int space, const char *text)
{
	for (struct name *n = p->buckets[bucket_of(text, space)]; n; n = n->next) {
		if (n->space == space && !strcmp(n->text, text))
			return n->type;
	}
	return NULL;
}

static struct name *enter_scope(struct parser *p)
{
	return p->newest;
}

static void leave_scope(struct parser *p, struct name *mark)
{
	for (; p->newest != mark; p->newest = p->newest->older)
		p->buckets[p->newest->bucket] = p->newest->next;
}

/* --- attributes: { key = value; ... } --- */

struct value {
	enum { VALUE_NUMBER, VALUE_TEXT } kind; /* TEXT: a string, a word, or a.b.c */
	uint64_t number;			/* two's complement when negative */
	bool negative;
	const char *text;
};

static struct value parse_value(struct parser *p)
{
	struct value v = {.kind = VALUE_NUMBER};

	if (at(p, KY_TOKEN_STRING)) {
		v.kind = VALUE_TEXT;
		v.text = p->token.text;
		next(p);
	} else if (at(p, KY_TOKEN_WORD)) {
		v.kind = VALUE_TEXT;
		v.text = parse_path(p);
	} else {
		v.negative = accept(p, '-');
		if (!v.negative)
			accept(p, '+');
		v.number = v.negative ? -p->token.number : p->token.number;
		expect(p, KY_TOKEN_NUMBER, "a value");
	}
	return v;
}

static uint64_t get_number(struct parser *p, const struct value *v, uint64_t max)
{
	if (v->kind != VALUE_NUMBER || v->negative || v->number > max)
		fail(p, "expected a number from 0 to %llu", (unsigned long long)max);
	return v->number;
}

static const char *get_text(struct parser *p, const struct value *v)
{
	if (v->kind != VALUE_TEXT)
		fail(p, "expected a string");
	return v->text ? v->text : "";
}

static bool text_is(const struct value *v, const char *text)
{
	return v->kind == VALUE_TEXT && v->text && !strcasecmp(v->text, text);
}

static bool get_bool(struct parser *p, const struct value *v)
{
	if (text_is(v, "true"))
		return true;
	if (text_is(v, "false"))
		return false;
	return get_number(p, v, 1);
}

static uint8_t get_base(struct parser *p, const struct value *v)
{
	static const struct {
		const char *word;
		uint8_t base;
	} words[] = {{"decimal", 10}, {"dec", 10}, {"d", 10}, {"i", 10}, {"u", 10},
		{"hexadecimal", 16}, {"hex", 16}, {"x", 16}, {"p", 16}, {"octal", 8}, {"oct", 8},
		{"o", 8}, {"binary", 2}, {"b", 2}};

	for (size_t i = 0; i < KY_ARRAY_SIZE(words); i++) {
		if (text_is(v, words[i].word))
			return words[i].base;
	}
	if (v->kind != VALUE_NUMBER || v->negative ||
		(v->number != 2 && v->number != 8 && v->number != 10 && v->number != 16))
		fail(p, "expected a base: 2, 8, 10 or 16");
	return (uint8_t)v->number;
}

static uint8_t get_byte_order(struct parser *p, const struct value *v)
{
	if (text_is(v, "le"))
		return KY_ORDER_LE;
	if (text_is(v, "be") || text_is(v, "network"))
		return KY_ORDER_BE;
	if (!text_is(v, "native"))
		fail(p, "expected a byte order: le, be, network or native");
	return KY_ORDER_NATIVE;
}

static uint32_t get_align(struct parser *p, const struct value *v)
{
	uint64_t n = get_number(p, v, MAX_ALIGN);

	if (!ky_is_pow2(n))
		fail(p, "the alignment is no power of two");
	return (uint32_t)n;
}

static bool get_is_text(struct parser *p, const struct value *v)
{
	if (text_is(v, "UTF8") || text_is(v, "UTF-8") || text_is(v, "ASCII"))
		return true;
	if (!text_is(v, "none"))
		fail(p, "expected an encoding: none, UTF8 or ASCII");
	return false;
}

/* From clock.NAME.value the name; other mappings mean nothing here. */
static const char *get_clock(struct parser *p, const struct value *v)
{
	const char *name, *end;

	if (v->kind != VALUE_TEXT || !v->text || strncmp(v->text, "clock.", 6))
		return NULL;
	name = v->text + 6;
	end = strchr(name, '.');
	return ky_arena_strndup(p->arena, name, end ? (size_t)(end - name) : strlen(name));
}

/* Calls set for each attribute of an optional { ... }. */
static void parse_attributes(struct parser *p,
	void (*set)(struct parser *p, struct ky_type *type, const char *key, const struct value *v),
	struct ky_type *type)
{
	if (!accept(p, '{'))
		return;
	while (!p->failed && !accept(p, '}')) {
		const char *key = parse_path(p);
		struct value v;

		expect(p, '=', "'='");
		v = parse_value(p);
		expect(p, ';', "';'");
		if (!p->failed)
			set(p, type, key, &v);
	}
}

/* --- types --- */

static const struct ky_type *parse_type(struct parser *p);

static struct ky_type *new_type(struct parser *p, enum ky_type_kind kind)
{
	struct ky_type *t = alloc(p, sizeof(*t));

	if (t)
		t->kind = kind;
	return t;
}

static void set_integer(struct parser *p, struct ky_type *t, const char *key, const struct value *v)
{
	if (!strcmp(key, "size"))
		t->size = (uint8_t)get_number(p, v, 64);
	else if (!strcmp(key, "align"))
		t->align = get_align(p, v);
	else if (!strcmp(key, "signed"))
		t->is_signed = get_bool(p, v);
	else if (!strcmp(key, "base"))
		t->base = get_base(p, v);
	else if (!strcmp(key, "byte_order"))
		t->byte_order = get_byte_order(p, v);
	else if (!strcmp(key, "encoding"))
		t->is_text = get_is_text(p, v);
	else if (!strcmp(key, "map"))
		t->clock = get_clock(p, v);
}

static const struct ky_type *parse_integer(struct parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_INT);

	if (!t)
		return NULL;
	t->base = 10;
	parse_attributes(p, set_integer, t);
	if (!t->size)
		fail(p, "an integer needs a size of 1 to 64");
	if (!t->align)
		t->align = t->size % 8 ? 1 : 8;
	return t;
}

/* exp_dig and mant_dig are collected in size (their sum) and count (mant_dig). */
static void set_float(struct parser *p, struct ky_type *t, const char *key, const struct value *v)
{
	if (!strcmp(key, "exp_dig")) {
		t->size += (uint8_t)get_number(p, v, 11);
	} else if (!strcmp(key, "mant_dig")) {
		t->count = get_number(p, v, 53);
		t->size += (uint8_t)t->count;
	} else if (!strcmp(key, "align")) {
		t->align = get_align(p, v);
	} else if (!strcmp(key, "byte_order")) {
		t->byte_order = get_byte_order(p, v);
	}
}

static const struct ky_type *parse_float(struct parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_FLOAT);

	if (!t)
		return NULL;
	t->align = 8;
	parse_attributes(p, set_float, t);
	if (!(t->size == 32 && t->count == 24) && !(t->size == 64 && t->count == 53))
		fail(p, "a floating point number must be of 32 or 64 bits");
	return t;
}

static void set_string(struct parser *p, struct ky_type *t, const char *key, const struct value *v)
{
	if (!strcmp(key, "encoding"))
		get_is_text(p, v);
}

static const struct ky_type *parse_string(struct parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_STRING);

	if (!t)
		return NULL;
	t->align = 8;
	parse_attributes(p, set_string, t);
	return t;
}

static uint64_t parse_bound(struct parser *p, const struct ky_type *integer)
{
	struct value v = parse_value(p);

	if (v.kind != VALUE_NUMBER || (v.negative && v.number && !integer->is_signed))
		fail(p, "the value does not fit the enumeration");
	return v.number;
}

/* LABEL [= LO [... HI]]; without a value, one more than the label before. */
static void parse_label(
	struct parser *p, const struct ky_type *integer, struct ky_label *l, uint64_t implicit)
{
	bool is_below;

	l->label = p->token.text;
	if (!accept(p, KY_TOKEN_STRING) && !accept(p, KY_TOKEN_WORD))
		fail(p, "expected a label");
	l->lo = l->hi = implicit;
	if (!accept(p, '='))
		return;
	l->lo = l->hi = parse_bound(p, integer);
	if (accept(p, KY_TOKEN_ELLIPSIS))
		l->hi = parse_bound(p, integer);
	is_below = integer->is_signed ? (int64_t)l->hi < (int64_t)l->lo : l->hi < l->lo;
	if (is_below)
		fail(p, "the range ends before it begins");
}

static void parse_labels(struct parser *p, struct ky_type *t)
{
	struct ky_label *labels = NULL;
	size_t n = 0, cap = 0;

	while (!p->failed && !accept(p, '}')) {
		uint64_t implicit = n ? labels[n - 1].hi + 1 : 0;
		struct ky_label *l = grow(p, &labels, &n, &cap, sizeof(*l));

		if (l)
			parse_label(p, t, l, implicit);
		if (!accept(p, ',') && !at(p, '}'))
			fail(p, "expected ',' or '}'");
	}
	t->labels = labels;
	t->n = (uint32_t)n;
}

static const struct ky_type *find_named(struct parser *p, int space, const char *name)
{
	const struct ky_type *t = name ? find_type(p, space, name) : NULL;

	if (!t)
		fail(p, "unknown type '%s'", name ? name : "");
	return t;
}

/* enum [NAME] [: TYPE] { labels } or enum NAME */
static const struct ky_type *parse_enum(struct parser *p)
{
	const char *name = at(p, KY_TOKEN_WORD) ? expect_word(p, "a name") : NULL;
	const struct ky_type *integer;
	struct ky_type *t;

	if (name && !at(p, ':') && !at(p, '{'))
		return find_named(p, NAME_ENUM, name);
	integer = accept(p, ':') ? parse_type(p) : find_named(p, NAME_ALIAS, "int");
	if (integer && integer->kind != KY_TYPE_INT)
		fail(p, "an enumeration must be of integers");
	expect(p, '{', "'{'");
	t = p->failed ? NULL : new_type(p, KY_TYPE_ENUM);
	if (!t)
		return NULL;
	*t = *integer;
	t->kind = KY_TYPE_ENUM;
	parse_labels(p, t);
	declare(p, NAME_ENUM, name, t);
	return t;
}

/* NAME [N] [ path ] ...: wraps type into arrays, the first bound outermost. */
static const struct ky_type *parse_bounds(struct parser *p, const struct ky_type *type)
{
	struct ky_type *t;

	if (!accept(p, '['))
		return type;
	if (++p->depth > KY_TSDL_MAX_DEPTH)
		fail(p, "types are nested too deeply");
	t = new_type(p, KY_TYPE_ARRAY);
	if (t && at(p, KY_TOKEN_NUMBER)) {
		t->count = p->token.number;
		next(p);
	} else if (t) {
		t->kind = KY_TYPE_SEQUENCE;
		t->path = parse_path(p);
	}
	expect(p, ']', "']'");
	type = p->failed ? NULL : parse_bounds(p, type);
	p->depth--;
	if (t)
		t->elem = type;
	return type ? t : NULL;
}

static void parse_alias(struct parser *p);
static void parse_typedef(struct parser *p);

/* One line of a structure's or variant's body: a declaration of types, or TYPE NAME, ...; */
static void parse_members(struct parser *p, struct ky_member **members, size_t *n, size_t *cap)
{
	const struct ky_type *type;

	if (accept_word(p, "typealias")) {
		parse_alias(p);
		return;
	}
	if (accept_word(p, "typedef")) {
		parse_typedef(p);
		return;
	}
	type = parse_type(p);
	if (accept(p, ';'))
		return; /* only declares a named type */
	do {
		struct ky_member *m = p->failed ? NULL : grow(p, members, n, cap, sizeof(*m));

		if (!m)
			return;
		m->name = expect_word(p, "the field's name");
		m->type = parse_bounds(p, type);
	} while (accept(p, ','));
	expect(p, ';', "';'");
}

/* { members } of a structure or variant */
static void parse_body(struct parser *p, struct ky_type *t)
{
	struct name *scope = enter_scope(p);
	struct ky_member *members = NULL;
	size_t n = 0, cap = 0;

	while (!p->failed && !accept(p, '}'))
		parse_members(p, &members, &n, &cap);
	leave_scope(p, scope);
	t->members = members;
	t->n = (uint32_t)n;
}

static uint32_t parse_struct_align(struct parser *p)
{
	struct value v;

	if (!accept_word(p, "align"))
		return 1;
	expect(p, '(', "'('");
	v = parse_value(p);
	expect(p, ')', "')'");
	return p->failed ? 1 : get_align(p, &v);
}

/* struct [NAME] { members } [align(N)] or struct NAME */
static const struct ky_type *parse_struct(struct parser *p)
{
	const char *name = at(p, KY_TOKEN_WORD) ? expect_word(p, "a name") : NULL;
	struct ky_type *t;

	if (name && !at(p, '{'))
		return find_named(p, NAME_STRUCT, name);
	expect(p, '{', "'{'");
	t = p->failed ? NULL : new_type(p, KY_TYPE_STRUCT);
	if (!t)
		return NULL;
	parse_body(p, t);
	t->align = parse_struct_align(p);
	declare(p, NAME_STRUCT, name, t);
	return t;
}

static const char *parse_tag(struct parser *p)
{
	const char *path;

	if (!accept(p, '<'))
		return NULL;
	path = parse_path(p);
	expect(p, '>', "'>'");
	return path;
}

/* variant [NAME] [<tag>] { members } or variant NAME <tag> */
static const struct ky_type *parse_variant(struct parser *p)
{
	const char *name = at(p, KY_TOKEN_WORD) ? expect_word(p, "a name") : NULL;
	const char *path = parse_tag(p);
	const struct ky_type *named = NULL;
	struct ky_type *t;

	if (name && !at(p, '{'))
		named = find_named(p, NAME_VARIANT, name);
	else
		expect(p, '{', "'{'");
	t = p->failed ? NULL : new_type(p, KY_TYPE_VARIANT);
	if (!t)
		return NULL;
	if (named) {
		*t = *named;
	} else {
		t->align = 1;
		parse_body(p, t);
		declare(p, NAME_VARIANT, name, t);
	}
	if (path)
		t->path = path;
	return t;
}

static bool is_c_word(const char *text)
{
	static const char *const words[] = {"void", "char", "short", "int", "long", "float",
		"double", "signed", "unsigned", "_Bool", "_Complex", "_Imaginary"};

	for (size_t i = 0; i < KY_ARRAY_SIZE(words); i++) {
		if (!strcmp(text, words[i]))
			return true;
	}
	return false;
}

/*
 * A type's name of C words or one identifier, and stars: "unsigned long", "uint64_t", "void *".
 * NULL when there is none.
 */
static const char *parse_type_name(struct parser *p)
{
	char text[MAX_NAME_LEN];
	size_t len = 0;

	while (!p->failed) {
		bool star = at(p, '*') && len;
		bool word = at(p, KY_TOKEN_WORD) && (!len || is_c_word(p->token.text));
		int n;

		if (!star && !word && !at_word(p, "const"))
			break;
		if (!at_word(p, "const")) {
			n = snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
				star ? "*" : p->token.text);
			if ((size_t)n >= sizeof(text) - len)
				fail(p, "the name is too long");
			else
				len += (size_t)n;
		}
		next(p);
	}
	if (!len)
		fail(p, "expected a type");
	return p->failed ? NULL : ky_arena_strndup(p->arena, text, len);
}

static const struct ky_type *parse_type_inner(struct parser *p)
{
	while (accept_word(p, "const"))
		;
	if (accept_word(p, "integer"))
		return parse_integer(p);
	if (accept_word(p, "floating_point"))
		return parse_float(p);
	if (accept_word(p, "string"))
		return parse_string(p);
	if (accept_word(p, "enum"))
		return parse_enum(p);
	if (accept_word(p, "struct"))
		return parse_struct(p);
	if (accept_word(p, "variant"))
		return parse_variant(p);
	return find_named(p, NAME_ALIAS, parse_type_name(p));
}

/* NULL after an error. */
static const struct ky_type *parse_type(struct parser *p)
{
	const struct ky_type *t;

	if (++p->depth > KY_TSDL_MAX_DEPTH)
		fail(p, "types are nested too deeply");
	t = p->failed ? NULL : parse_type_inner(p);
	p->depth--;
	return p->failed ? NULL : t;
}

/* typealias TYPE := NAME; */
static void parse_alias(struct parser *p)
{
	const struct ky_type *t = parse_type(p);

	t = parse_bounds(p, t);
	expect(p, KY_TOKEN_TYPE_ASSIGN, "':='");
	declare(p, NAME_ALIAS, p->failed ? NULL : parse_type_name(p), t);
	expect(p, ';', "';'");
}

/* typedef TYPE NAME; */
static void parse_typedef(struct parser *p)
{
	const struct ky_type *t = parse_type(p);
	const char *name = p->failed ? NULL : expect_word(p, "a name");

	t = parse_bounds(p, t);
	declare(p, NAME_ALIAS, name, t);
	expect(p, ';', "';'");
}

/* --- blocks --- */

bool ky_uuid_parse(uint8_t uuid[16], const char *text)
{
	for (int i = 0; i < 16; i++) {
		unsigned v;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		if (!strchr("0123456789abcdefABCDEF", text[0]) || !text[0] ||
			!strchr("0123456789abcdefABCDEF", text[1]) || !text[1] ||
			sscanf(text, "%2x", &v) != 1)
			return false;
		uuid[i] = (uint8_t)v;
		text += 2;
	}
	return !*text;
}

/* What a block's lines are handed to: `key = value;` or `key := type;` (v or type is NULL). */
typedef void (*set_fn)(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type);

static void parse_assignment(struct parser *p, set_fn set, void *block)
{
	const char *key = parse_path(p);

	if (accept(p, KY_TOKEN_TYPE_ASSIGN)) {
		const struct ky_type *type = parse_type(p);

		if (!p->failed)
			set(p, block, key, NULL, type);
	} else {
		struct value v;

		expect(p, '=', "'=' or ':='");
		v = parse_value(p);
		if (!p->failed)
			set(p, block, key, &v, NULL);
	}
	expect(p, ';', "';'");
}

/* A declaration that may stand anywhere; false when there is none here. */
static bool parse_declaration(struct parser *p)
{
	if (accept_word(p, "typealias")) {
		parse_alias(p);
		return true;
	}
	if (accept_word(p, "typedef")) {
		parse_typedef(p);
		return true;
	}
	if (!at_word(p, "struct") && !at_word(p, "variant") && !at_word(p, "enum"))
		return false;
	parse_type(p);
	expect(p, ';', "';'");
	return true;
}

static void parse_block(struct parser *p, set_fn set, void *block)
{
	struct name *scope = enter_scope(p);

	expect(p, '{', "'{'");
	while (!p->failed && !accept(p, '}')) {
		if (!parse_declaration(p))
			parse_assignment(p, set, block);
	}
	leave_scope(p, scope);
}

/* Scopes of fields must be structures. */
static void set_scope(struct parser *p, const struct ky_type **scope, const struct ky_type *type)
{
	if (!type || type->kind != KY_TYPE_STRUCT)
		fail(p, "expected ':=' and a structure");
	*scope = type;
}

static void set_trace(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
	struct ky_tsdl *t = block;

	if (!strcmp(key, "packet.header")) {
		set_scope(p, &t->packet_header, type);
	} else if (!v) {
		return;
	} else if (!strcmp(key, "byte_order")) {
		t->big_endian = get_byte_order(p, v) == KY_ORDER_BE;
	} else if (!strcmp(key, "uuid")) {
		t->has_uuid = ky_uuid_parse(t->uuid, get_text(p, v));
		if (!t->has_uuid)
			fail(p, "expected a UUID");
	}
}

static void set_env(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
	struct ky_tsdl *t = block;
	struct ky_env *e = v ? grow(p, &t->env, &t->n_env, &p->cap_env, sizeof(*e)) : NULL;

	if (!e)
		return;
	e->name = key;
	e->text = v->kind == VALUE_TEXT ? get_text(p, v) : NULL;
	e->number = (int64_t)v->number;
}

static void set_clock(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
	struct ky_clock *c = block;

	if (!v)
		return;
	if (!strcmp(key, "name"))
		c->name = get_text(p, v);
	else if (!strcmp(key, "description"))
		c->description = get_text(p, v);
	else if (!strcmp(key, "uuid"))
		c->uuid = get_text(p, v);
	else if (!strcmp(key, "freq"))
		c->freq = get_number(p, v, UINT64_MAX);
	else if (!strcmp(key, "offset_s"))
		c->offset_s = (int64_t)v->number;
	else if (!strcmp(key, "offset"))
		c->offset = get_number(p, v, UINT64_MAX);
}

static void set_stream(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
	struct ky_tsdl_stream *s = block;

	if (!strcmp(key, "event.header"))
		set_scope(p, &s->event_header, type);
	else if (!strcmp(key, "event.context"))
		set_scope(p, &s->event_context, type);
	else if (!strcmp(key, "packet.context"))
		set_scope(p, &s->packet_context, type);
	else if (v && !strcmp(key, "id"))
		s->id = get_number(p, v, UINT64_MAX);
}

static void set_event(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
	struct ky_tsdl_event *e = block;

	if (!strcmp(key, "context"))
		set_scope(p, &e->context, type);
	else if (!strcmp(key, "fields"))
		set_scope(p, &e->fields, type);
	else if (!v)
		return;
	else if (!strcmp(key, "name"))
		e->name = get_text(p, v);
	else if (!strcmp(key, "id"))
		e->id = get_number(p, v, UINT64_MAX);
	else if (!strcmp(key, "stream_id"))
		e->stream_id = get_number(p, v, UINT64_MAX);
	else if (!strcmp(key, "loglevel"))
		e->loglevel = (int)get_number(p, v, INT32_MAX);
}

static void set_nothing(struct parser *p, void *block, const char *key, const struct value *v,
	const struct ky_type *type)
{
}

static uint64_t cycles_to_ns(uint64_t freq, uint64_t cycles)
{
	double ns;

	if (freq == 1000000000)
		return cycles;
	ns = 1e9 * (double)cycles / (double)freq;
	return ns >= 0x1p64 ? UINT64_MAX : (uint64_t)ns;
}

static int64_t saturate(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static int64_t clock_base_ns(const struct ky_clock *c)
{
	__int128 s = (__int128)c->offset_s + c->offset / c->freq;

	return saturate(s * 1000000000 + cycles_to_ns(c->freq, c->offset % c->freq));
}

int64_t ky_clock_ns(const struct ky_clock *c, uint64_t value)
{
	return saturate((__int128)c->base_ns + cycles_to_ns(c->freq, value));
}

static void parse_clock(struct parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_clock *c = grow(p, &t->clocks, &t->n_clocks, &p->cap_clocks, sizeof(*c));

	if (!c)
		return;
	c->freq = 1000000000;
	parse_block(p, set_clock, c);
	if (!c->freq || !c->name)
		fail(p, "a clock needs a name and a frequency");
	else
		c->base_ns = clock_base_ns(c);
}

static void parse_stream(struct parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_stream *s = grow(p, &t->streams, &t->n_streams, &p->cap_streams, sizeof(*s));

	if (s)
		parse_block(p, set_stream, s);
}

static void parse_event(struct parser *p)
{
	struct ky_tsdl *t = p->tsdl;
	struct ky_tsdl_event *e = grow(p, &t->events, &t->n_events, &p->cap_events, sizeof(*e));

	if (!e)
		return;
	e->loglevel = -1;
	parse_block(p, set_event, e);
}

static void parse_top(struct parser *p)
{
	if (accept(p, ';') || parse_declaration(p))
		return;
	if (accept_word(p, "trace"))
		parse_block(p, set_trace, p->tsdl);
	else if (accept_word(p, "env"))
		parse_block(p, set_env, p->tsdl);
	else if (accept_word(p, "clock"))
		parse_clock(p);
	else if (accept_word(p, "stream"))
		parse_stream(p);
	else if (accept_word(p, "event"))
		parse_event(p);
	else if (accept_word(p, "callsite"))
		parse_block(p, set_nothing, NULL);
	else
		fail(p, "expected a block: trace, env, clock, stream or event");
	expect(p, ';', "';'");
}

/* --- the whole --- */

static int compare_streams(const void *a, const void *b)
{
	const struct ky_tsdl_stream *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int compare_events(const void *a, const void *b)
{
	const struct ky_tsdl_event *x = a, *y = b;

	if (x->stream_id != y->stream_id)
		return x->stream_id < y->stream_id ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* Sorts, and refuses what is there twice and events of streams that are not there. */
static void finish(struct parser *p)
{
	struct ky_tsdl *t = p->tsdl;

	if (!t->n_streams) {
		fail(p, "no stream is described");
		return;
	}
	qsort(t->streams, t->n_streams, sizeof(*t->streams), compare_streams);
	if (t->n_events)
		qsort(t->events, t->n_events, sizeof(*t->events), compare_events);
	for (size_t i = 1; i < t->n_streams; i++) {
		if (t->streams[i].id == t->streams[i - 1].id)
			fail(p, "two streams have the id %llu",
				(unsigned long long)t->streams[i].id);
	}
	for (size_t i = 0; i < t->n_events; i++) {
		const struct ky_tsdl_event *e = &t->events[i];
		struct ky_tsdl_stream key = {.id = e->stream_id};

		if (i && !compare_events(e, e - 1))
			fail(p, "two events have the id %llu", (unsigned long long)e->id);
		if (!bsearch(&key, t->streams, t->n_streams, sizeof(key), compare_streams))
			fail(p, "an event belongs to the stream %llu, which is not described",
				(unsigned long long)e->stream_id);
	}
}

/* One block; if it is cut off by the end of the text, what it added is taken back. */
static void parse_next(struct parser *p)
{
	struct ky_tsdl *t = p->tsdl, before = *t;

	parse_top(p);
	if (!p->failed || p->lexer.p < p->lexer.end || !before.n_streams)
		return;
	t->n_env = before.n_env;
	t->n_clocks = before.n_clocks;
	t->n_streams = before.n_streams;
	t->n_events = before.n_events;
	t->is_cut = true;
	p->failed = false;
}

int ky_tsdl_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error)
{
	struct parser p = {.arena = &t->arena, .tsdl = t, .error = error};

	memset(t, 0, sizeof(*t));
	memset(error, 0, sizeof(*error));
	t->arena.max = KY_TSDL_MAX_MEMORY;
	p.buckets = alloc(&p, N_BUCKETS * sizeof(*p.buckets));
	ky_lexer_init(&p.lexer, p.arena, text, len);
	next(&p);
	while (!p.failed && !at(&p, KY_TOKEN_END))
		parse_next(&p);
	if (!p.failed)
		finish(&p);
	return p.failed ? -EINVAL : 0;
}

void ky_tsdl_deinit(struct ky_tsdl *t)
{
	ky_arena_deinit(&t->arena);
}

const struct ky_env *ky_tsdl_env(const struct ky_tsdl *t, const char *name)
{
	for (size_t i = 0; i < t->n_env; i++) {
		if (!strcmp(t->env[i].name, name))
			return &t->env[i];
	}
	return NULL;
}

const struct ky_clock *ky_tsdl_clock(const struct ky_tsdl *t, const char *name)
{
	for (size_t i = 0; i < t->n_clocks; i++) {
		if (!strcmp(t->clocks[i].name, name))
			return &t->clocks[i];
	}
	return NULL;
}
