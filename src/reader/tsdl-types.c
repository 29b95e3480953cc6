/* SPDX-License-Identifier: MIT */
/*
 * Types of TSDL. Names of types are numbers in a stack of declarations; a scope is a mark in that
 * stack, and leaving it restores what its declarations had shadowed.
 */
#include "reader/tsdl-parse.h"
#include "reader/types.h"

/* Name spaces: `struct x`, `enum x` and `x` are different types. */
static const char space_alias, space_struct, space_variant, space_enum;

/* --- names of types --- */

static void declare_type(
	struct ky_parser *p, const void *space, const char *name, const struct ky_type *type)
{
	uint32_t *at = p->failed || !name ? NULL : ky_names_at(&p->tsdl->names, space, name);
	struct ky_declared *d;

	if (p->failed || !name)
		return;
	if (at && *at != UINT32_MAX && *at >= p->scope) {
		ky_parse_fail(p, "the type '%.64s' is declared twice", name);
		return;
	}
	if (p->n_declared == p->cap_declared) {
		size_t cap = 2 * p->cap_declared + 64;

		d = reallocarray(p->declared, cap, sizeof(*d));
		if (d) {
			p->declared = d;
			p->cap_declared = cap;
		}
	}
	if (!at || p->n_declared == p->cap_declared) {
		ky_parse_fail(p, "the metadata is too large");
		return;
	}
	p->declared[p->n_declared] = (struct ky_declared){space, name, type, *at};
	*at = (uint32_t)p->n_declared++;
}

size_t ky_parse_enter_scope(struct ky_parser *p)
{
	size_t outer = p->scope;

	p->scope = p->n_declared;
	return outer;
}

void ky_parse_leave_scope(struct ky_parser *p, size_t outer)
{
	while (p->n_declared > p->scope) {
		const struct ky_declared *d = &p->declared[--p->n_declared];

		*ky_names_at(&p->tsdl->names, d->space, d->name) = d->shadows;
	}
	p->scope = outer;
}

static const struct ky_type *find_type(struct ky_parser *p, const void *space, const char *name)
{
	uint32_t at = name ? ky_names_find(&p->tsdl->names, space, name) : UINT32_MAX;

	if (at != UINT32_MAX)
		return p->declared[at].type;
	ky_parse_fail(p, "unknown type '%.64s'", name ? name : "");
	return NULL;
}

static bool is_one_of(const char *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(text, words[i]))
			return true;
	}
	return false;
}

/* Words that a type's name may have several of. */
static bool is_c_word(const char *text)
{
	static const char *const words[] = {"void", "char", "short", "int", "long", "float",
		"double", "signed", "unsigned", "_Bool", "_Complex", "_Imaginary"};

	return is_one_of(text, words, KY_ARRAY_SIZE(words));
}

static bool is_keyword(const char *text)
{
	static const char *const words[] = {"align", "callsite", "clock", "const", "enum", "env",
		"event", "floating_point", "integer", "stream", "string", "struct", "trace",
		"typealias", "typedef", "variant"};

	return is_one_of(text, words, KY_ARRAY_SIZE(words)) || is_c_word(text);
}

static void skip_const(struct ky_parser *p)
{
	while (ky_parse_accept_word(p, "const"))
		;
}

/*
 * The name of a type: C words, or one identifier. With any words if it is declared here. NULL after
 * an error.
 */
static const char *parse_type_name(struct ky_parser *p, bool is_declared)
{
	p->words.len = 0;
	for (;; ky_parse_next(p)) {
		const char *word;

		skip_const(p);
		if (!ky_parse_at(p, KY_TOKEN_WORD))
			break;
		word = p->token.text;
		if (is_keyword(word) && !is_c_word(word))
			break;
		if (p->words.len && !is_c_word(word) && !is_declared)
			break;
		if (p->words.len)
			ky_buf_append(&p->words, " ", 1);
		ky_buf_append(&p->words, word, strlen(word));
	}
	if (!p->words.len)
		ky_parse_fail(p, "expected a type");
	return p->failed ? NULL : ky_parse_intern(p, p->words.data, p->words.len);
}

/* The name of a pointer to a type: the type's, and a star for each. */
static const char *pointer_name(struct ky_parser *p, const char *name, unsigned n_stars)
{
	p->words.len = 0;
	ky_buf_append(&p->words, name, strlen(name));
	while (n_stars-- > 0)
		ky_buf_append(&p->words, " *", 2);
	return ky_parse_intern(p, p->words.error ? NULL : p->words.data, p->words.len);
}

static unsigned parse_stars(struct ky_parser *p)
{
	unsigned n = 0;

	for (; ky_parse_accept(p, '*'); n++)
		skip_const(p);
	return n;
}

/* --- numbers and strings --- */

static struct ky_type *new_type(struct ky_parser *p, enum ky_type_kind kind)
{
	struct ky_type *t = p->failed ? NULL : ky_parse_alloc(p, sizeof(*t));

	if (t)
		t->kind = kind;
	return t;
}

typedef void (*set_attr_fn)(
	struct ky_parser *p, struct ky_type *type, const char *key, const struct ky_attr *a);

/* Calls set for each attribute of an optional { key = value; ... }. */
static void parse_attributes(struct ky_parser *p, set_attr_fn set, struct ky_type *type)
{
	if (!ky_parse_accept(p, '{'))
		return;
	while (!p->failed && !ky_parse_accept(p, '}')) {
		const char *key = ky_parse_dotted(p);
		struct ky_attr a;

		ky_parse_expect(p, '=', "'='");
		a = ky_attr_parse(p);
		ky_attr_once(p, type, key);
		ky_parse_expect(p, ';', "';'");
		if (!p->failed)
			set(p, type, key, &a);
	}
}

static void set_integer(
	struct ky_parser *p, struct ky_type *t, const char *key, const struct ky_attr *a)
{
	if (!strcmp(key, "size"))
		t->size = (uint8_t)ky_attr_number(p, a, 64);
	else if (!strcmp(key, "align"))
		t->align = ky_attr_align(p, a);
	else if (!strcmp(key, "signed"))
		t->is_signed = ky_attr_bool(p, a);
	else if (!strcmp(key, "base"))
		t->base = ky_attr_base(p, a);
	else if (!strcmp(key, "byte_order"))
		t->byte_order = ky_attr_byte_order(p, a);
	else if (!strcmp(key, "encoding"))
		t->is_text = ky_attr_is_text(p, a);
	else if (!strcmp(key, "map"))
		t->clock = ky_attr_clock(p, a);
}

static const struct ky_type *parse_integer(struct ky_parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_INT);

	if (!t)
		return NULL;
	t->base = 10;
	parse_attributes(p, set_integer, t);
	if (!t->size)
		ky_parse_fail(p, "an integer needs a size of 1 to 64");
	if (!t->align)
		t->align = t->size % 8 ? 1 : 8;
	return t;
}

/* exp_dig and mant_dig are collected in size (their sum) and count (mant_dig). */
static void set_float(
	struct ky_parser *p, struct ky_type *t, const char *key, const struct ky_attr *a)
{
	if (!strcmp(key, "exp_dig")) {
		t->size += (uint8_t)ky_attr_number(p, a, 11);
	} else if (!strcmp(key, "mant_dig")) {
		t->count = ky_attr_number(p, a, 53);
		t->size += (uint8_t)t->count;
	} else if (!strcmp(key, "align")) {
		t->align = ky_attr_align(p, a);
	} else if (!strcmp(key, "byte_order")) {
		t->byte_order = ky_attr_byte_order(p, a);
	}
}

static const struct ky_type *parse_float(struct ky_parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_FLOAT);

	if (!t)
		return NULL;
	t->align = 8;
	parse_attributes(p, set_float, t);
	if (!(t->size == 32 && t->count == 24) && !(t->size == 64 && t->count == 53))
		ky_parse_fail(p, "a floating point number must be of 32 or 64 bits");
	return t;
}

static void set_string(
	struct ky_parser *p, struct ky_type *t, const char *key, const struct ky_attr *a)
{
	if (!strcmp(key, "encoding"))
		ky_attr_is_text(p, a);
}

static const struct ky_type *parse_string(struct ky_parser *p)
{
	struct ky_type *t = new_type(p, KY_TYPE_STRING);

	if (!t)
		return NULL;
	t->align = 8;
	parse_attributes(p, set_string, t);
	return t;
}

/* --- enumerations --- */

static uint64_t parse_bound(struct ky_parser *p)
{
	struct ky_attr a = ky_attr_parse(p);

	if (a.kind != KY_ATTR_NUMBER)
		ky_parse_fail(p, "expected a number");
	return a.number;
}

/* LABEL [= LO [... HI]]; without a value, one more than the label before. */
static void parse_label(struct ky_parser *p, bool is_signed, const char **label,
	struct ky_range *range, uint64_t implicit)
{
	*label = p->token.text;
	if (!ky_parse_accept(p, KY_TOKEN_STRING) && !ky_parse_accept(p, KY_TOKEN_WORD))
		ky_parse_fail(p, "expected a label");
	range->lo = range->hi = implicit;
	if (!ky_parse_accept(p, '='))
		return;
	range->lo = range->hi = parse_bound(p);
	if (ky_parse_accept(p, KY_TOKEN_ELLIPSIS))
		range->hi = parse_bound(p);
	if (is_signed ? (int64_t)range->hi < (int64_t)range->lo : range->hi < range->lo)
		ky_parse_fail(p, "the range ends before it begins");
}

static void parse_labels(struct ky_parser *p, struct ky_type *t)
{
	size_t n = 0, cap = 0, n_ranges = 0, cap_ranges = 0;
	struct ky_range *ranges = NULL;
	const char **labels = NULL;

	do {
		uint64_t implicit = n ? ranges[n - 1].hi + 1 : 0;
		const char **label = ky_parse_grow(p, &labels, &n, &cap, sizeof(*label));
		struct ky_range *range = ky_parse_grow(
			p, &ranges, &n_ranges, &cap_ranges, sizeof(*range));

		if (!label || !range)
			return;
		parse_label(p, t->is_signed, label, range, implicit);
		if (!ky_parse_accept(p, ',') && !ky_parse_at(p, '}'))
			ky_parse_fail(p, "expected ',' or '}'");
	} while (!p->failed && !ky_parse_accept(p, '}'));
	t->labels = labels;
	t->ranges = ranges;
	t->n = (uint32_t)n;
	if (p->failed)
		return;
	if (!ky_type_index_labels(p->tsdl, t))
		ky_parse_fail(p, "the metadata is too large");
}

/* enum [NAME] [: TYPE] { labels } or enum NAME */
static const struct ky_type *parse_enum(struct ky_parser *p)
{
	const char *name = ky_parse_at(p, KY_TOKEN_WORD) ? ky_parse_word(p, "a name") : NULL;
	const struct ky_type *integer;
	struct ky_type *t;

	if (name && !ky_parse_at(p, ':') && !ky_parse_at(p, '{'))
		return find_type(p, &space_enum, name);
	if (ky_parse_accept(p, ':'))
		integer = ky_parse_type(p);
	else
		integer = find_type(p, &space_alias, ky_parse_intern(p, "int", 3));
	if (integer && integer->kind != KY_TYPE_INT)
		ky_parse_fail(p, "an enumeration must be of integers");
	ky_parse_expect(p, '{', "'{'");
	t = new_type(p, KY_TYPE_ENUM);
	if (!t)
		return NULL;
	*t = *integer;
	t->kind = KY_TYPE_ENUM;
	parse_labels(p, t);
	declare_type(p, &space_enum, name, t);
	return t;
}

/* --- structures and variants --- */

/* A type as it begins a declaration; a pointer to it may have another type. */
struct spec {
	const struct ky_type *type; /* NULL: what name says */
	const char *name;	    /* "unsigned int", "struct x"; NULL: a type without a name */
};

static struct spec parse_spec(struct ky_parser *p);

/* The type of a declarator behind a specifier: pointers are types of their own, shown in hex. */
static const struct ky_type *resolve_spec(
	struct ky_parser *p, const struct spec *s, unsigned n_stars)
{
	const struct ky_type *found;
	struct ky_type *pointer;

	if (p->failed)
		return NULL;
	if (!n_stars)
		return s->type ? s->type : find_type(p, &space_alias, s->name);
	found = find_type(p, &space_alias, s->name ? pointer_name(p, s->name, n_stars) : NULL);
	if (!found || found->kind != KY_TYPE_INT)
		return found;
	pointer = new_type(p, KY_TYPE_INT);
	if (!pointer)
		return NULL;
	*pointer = *found;
	pointer->base = 16;
	return pointer;
}

/* [N] [ path ] ...: wraps type into arrays, the first bound outermost. */
static const struct ky_type *parse_bounds(struct ky_parser *p, const struct ky_type *type)
{
	struct ky_type *t;

	if (!ky_parse_accept(p, '['))
		return type;
	if (++p->depth > KY_TSDL_MAX_DEPTH)
		ky_parse_fail(p, "types are nested too deeply");
	t = new_type(p, KY_TYPE_ARRAY);
	if (t && ky_parse_at(p, KY_TOKEN_NUMBER)) {
		t->count = p->token.number;
		ky_parse_next(p);
	} else if (t) {
		t->kind = KY_TYPE_SEQUENCE;
		t->path = ky_parse_path(p);
	}
	ky_parse_expect(p, ']', "']'");
	type = p->failed ? NULL : parse_bounds(p, type);
	p->depth--;
	if (t)
		t->elem = type;
	return type ? t : NULL;
}

/* A name that is declared: no word of the language. */
static const char *parse_identifier(struct ky_parser *p, const char *what)
{
	if (ky_parse_at(p, KY_TOKEN_WORD) && is_keyword(p->token.text))
		ky_parse_fail(p, "expected %s: '%s' is a keyword", what, p->token.text);
	return ky_parse_word(p, what);
}

/* A list of members. */
struct members {
	struct ky_member *v;
	size_t n, cap;
};

static void add_member(struct ky_parser *p, const struct ky_type *owner, struct members *to,
	const char *name, const struct ky_type *type)
{
	struct ky_member *m;

	if (p->failed)
		return;
	ky_attr_once(p, owner, name);
	m = ky_parse_grow(p, &to->v, &to->n, &to->cap, sizeof(*m));
	if (m)
		*m = (struct ky_member){name, type};
}

/* One line of a body: a declaration of types, or TYPE NAME, ...; */
static void parse_members(struct ky_parser *p, const struct ky_type *owner, struct members *to)
{
	struct spec s;

	if ((ky_parse_at_word(p, "typealias") || ky_parse_at_word(p, "typedef")) &&
		ky_parse_declaration(p))
		return;
	s = parse_spec(p);
	if (s.type && ky_parse_accept(p, ';'))
		return; /* only declares a named type */
	do {
		const struct ky_type *type = resolve_spec(p, &s, parse_stars(p));
		const char *name = parse_identifier(p, "the field's name");

		add_member(p, owner, to, name, parse_bounds(p, type));
	} while (ky_parse_accept(p, ','));
	ky_parse_expect(p, ';', "';'");
}

/* { members } of a structure or variant */
static void parse_body(struct ky_parser *p, struct ky_type *t)
{
	size_t scope = ky_parse_enter_scope(p);
	struct members members = {0};

	while (!p->failed && !ky_parse_accept(p, '}'))
		parse_members(p, t, &members);
	ky_parse_leave_scope(p, scope);
	t->members = members.v;
	t->n = (uint32_t)members.n;
}

static uint32_t parse_struct_align(struct ky_parser *p)
{
	struct ky_attr a;

	if (!ky_parse_accept_word(p, "align"))
		return 1;
	ky_parse_expect(p, '(', "'('");
	a = ky_attr_parse(p);
	ky_parse_expect(p, ')', "')'");
	/* align(0) asks for nothing. */
	if (p->failed || (a.kind == KY_ATTR_NUMBER && !a.number))
		return 1;
	return ky_attr_align(p, &a);
}

/* struct [NAME] { members } [align(N)] or struct NAME */
static const struct ky_type *parse_struct(struct ky_parser *p, const char *name)
{
	struct ky_type *t;

	if (name && !ky_parse_at(p, '{'))
		return find_type(p, &space_struct, name);
	ky_parse_expect(p, '{', "'{'");
	t = new_type(p, KY_TYPE_STRUCT);
	if (!t)
		return NULL;
	parse_body(p, t);
	t->align = parse_struct_align(p);
	declare_type(p, &space_struct, name, t);
	return t;
}

static const char *const *parse_tag(struct ky_parser *p)
{
	const char *const *path;

	if (!ky_parse_accept(p, '<'))
		return NULL;
	path = ky_parse_path(p);
	ky_parse_expect(p, '>', "'>'");
	return path;
}

/* variant [NAME] [<tag>] { members } or variant NAME <tag> */
static const struct ky_type *parse_variant(struct ky_parser *p, const char *name)
{
	const char *const *path = parse_tag(p);
	const struct ky_type *named = NULL;
	struct ky_type *t;

	if (name && !ky_parse_at(p, '{'))
		named = find_type(p, &space_variant, name);
	else
		ky_parse_expect(p, '{', "'{'");
	t = new_type(p, KY_TYPE_VARIANT);
	if (!t)
		return NULL;
	if (named) {
		*t = *named;
	} else {
		t->align = 1;
		parse_body(p, t);
		declare_type(p, &space_variant, name, t);
	}
	if (path) {
		struct ky_type *tagged = new_type(p, KY_TYPE_VARIANT);

		if (!tagged)
			return NULL;
		*tagged = *t; /* what is declared has no tag */
		tagged->path = path;
		return tagged;
	}
	return t;
}

/* --- declarations --- */

static struct spec parse_tagged_spec(struct ky_parser *p, const char *kind,
	const struct ky_type *(*parse)(struct ky_parser *p, const char *name))
{
	const char *name = ky_parse_at(p, KY_TOKEN_WORD) ? parse_identifier(p, "a name") : NULL;
	struct spec s = {.type = p->failed ? NULL : parse(p, name)};

	if (!name || p->failed)
		return s;
	p->words.len = 0;
	ky_buf_printf(&p->words, "%s %s", kind, name);
	s.name = ky_parse_intern(p, p->words.error ? NULL : p->words.data, p->words.len);
	return s;
}

static struct spec parse_bare_spec(struct ky_parser *p)
{
	if (ky_parse_accept_word(p, "integer"))
		return (struct spec){.type = parse_integer(p)};
	if (ky_parse_accept_word(p, "floating_point"))
		return (struct spec){.type = parse_float(p)};
	if (ky_parse_accept_word(p, "string"))
		return (struct spec){.type = parse_string(p)};
	if (ky_parse_accept_word(p, "enum"))
		return (struct spec){.type = parse_enum(p)};
	if (ky_parse_accept_word(p, "struct"))
		return parse_tagged_spec(p, "struct", parse_struct);
	if (ky_parse_accept_word(p, "variant"))
		return parse_tagged_spec(p, "variant", parse_variant);
	return (struct spec){.name = parse_type_name(p, false)};
}

static struct spec parse_spec(struct ky_parser *p)
{
	struct spec s = {0};

	if (++p->depth > KY_TSDL_MAX_DEPTH)
		ky_parse_fail(p, "types are nested too deeply");
	skip_const(p);
	if (!p->failed)
		s = parse_bare_spec(p);
	skip_const(p);
	p->depth--;
	return s;
}

const struct ky_type *ky_parse_type(struct ky_parser *p)
{
	struct spec s = parse_spec(p);

	return resolve_spec(p, &s, 0);
}

/* typealias TYPE := NAME; */
static void parse_alias(struct ky_parser *p)
{
	struct spec s = parse_spec(p);
	const struct ky_type *t = resolve_spec(p, &s, parse_stars(p));
	const char *name;
	unsigned n_stars;

	t = parse_bounds(p, t);
	ky_parse_expect(p, KY_TOKEN_TYPE_ASSIGN, "':='");
	name = p->failed ? NULL : parse_type_name(p, true);
	n_stars = parse_stars(p);
	if (name && n_stars)
		name = pointer_name(p, name, n_stars);
	declare_type(p, &space_alias, name, t);
}

/* typedef TYPE NAME, ...; */
static void parse_typedef(struct ky_parser *p)
{
	struct spec s = parse_spec(p);

	do {
		const struct ky_type *t = resolve_spec(p, &s, parse_stars(p));
		const char *name = parse_identifier(p, "a name");

		declare_type(p, &space_alias, name, parse_bounds(p, t));
	} while (ky_parse_accept(p, ','));
}

bool ky_parse_declaration(struct ky_parser *p)
{
	bool has_body = false;

	if (ky_parse_accept_word(p, "typealias")) {
		parse_alias(p);
	} else if (ky_parse_accept_word(p, "typedef")) {
		parse_typedef(p);
	} else if (ky_parse_at_word(p, "struct") || ky_parse_at_word(p, "variant") ||
		   ky_parse_at_word(p, "enum")) {
		parse_spec(p);
		has_body = true;
	} else {
		return false;
	}
	/* Some writers forget it behind a body. */
	if (!ky_parse_accept(p, ';') && !has_body)
		ky_parse_fail(p, "expected ';'");
	return true;
}
