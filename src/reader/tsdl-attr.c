/* SPDX-License-Identifier: MIT */
#include "reader/tsdl-parse.h"

#include <stdarg.h>

#define MAX_ALIGN ((uint64_t)1 << 31)

/* --- tokens --- */

void ky_parse_fail(struct ky_parser *p, const char *fmt, ...)
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

void *ky_parse_alloc(struct ky_parser *p, size_t n)
{
	void *m = ky_arena_alloc(&p->tsdl->arena, n);

	if (!m)
		ky_parse_fail(p, "the metadata is too large");
	return m;
}

void *ky_parse_grow(struct ky_parser *p, void *array, size_t *n, size_t *cap, size_t size)
{
	void *m = ky_arena_grow(&p->tsdl->arena, array, n, cap, size);

	if (!m)
		ky_parse_fail(p, "the metadata is too large");
	return m;
}

void ky_parse_next(struct ky_parser *p)
{
	if (p->failed)
		return;
	ky_lexer_next(&p->lexer, &p->token);
	if (p->lexer.error)
		ky_parse_fail(p, "%s", p->lexer.error);
}

bool ky_parse_at_word(const struct ky_parser *p, const char *word)
{
	return ky_parse_at(p, KY_TOKEN_WORD) && !strcmp(p->token.text, word);
}

bool ky_parse_accept(struct ky_parser *p, int kind)
{
	if (!ky_parse_at(p, kind))
		return false;
	ky_parse_next(p);
	return true;
}

bool ky_parse_accept_word(struct ky_parser *p, const char *word)
{
	if (!ky_parse_at_word(p, word))
		return false;
	ky_parse_next(p);
	return true;
}

void ky_parse_expect(struct ky_parser *p, int kind, const char *what)
{
	if (!ky_parse_accept(p, kind))
		ky_parse_fail(p, "expected %s", what);
}

const char *ky_parse_word(struct ky_parser *p, const char *what)
{
	const char *text = p->token.text;

	if (!ky_parse_at(p, KY_TOKEN_WORD)) {
		ky_parse_fail(p, "expected %s", what);
		return NULL;
	}
	ky_parse_next(p);
	return p->failed ? NULL : text;
}

const char *ky_parse_intern(struct ky_parser *p, const char *text, size_t len)
{
	const char *interned = text ? ky_names_intern(&p->tsdl->names, text, len) : NULL;

	if (!interned)
		ky_parse_fail(p, "the metadata is too large");
	return interned;
}

const char *ky_parse_dotted(struct ky_parser *p)
{
	p->words.len = 0;
	do {
		const char *word = ky_parse_word(p, "a name");

		if (!word)
			return NULL;
		if (p->words.len)
			ky_buf_append(&p->words, ".", 1);
		ky_buf_append(&p->words, word, strlen(word));
	} while (ky_parse_accept(p, '.'));
	return ky_parse_intern(p, p->words.error ? NULL : p->words.data, p->words.len);
}

const char *const *ky_parse_path(struct ky_parser *p)
{
	const char **words = NULL, **word;
	size_t n = 0, cap = 0;

	do {
		const char *text = ky_parse_word(p, "a name");

		word = text ? ky_parse_grow(p, &words, &n, &cap, sizeof(*words)) : NULL;
		if (!word)
			return NULL;
		*word = text;
	} while (ky_parse_accept(p, '.'));
	return ky_parse_grow(p, &words, &n, &cap, sizeof(*words)) ? words : NULL;
}

/* --- attributes --- */

static void parse_number(struct ky_parser *p, struct ky_attr *a)
{
	while (ky_parse_at(p, '-') || ky_parse_at(p, '+')) {
		a->is_negative ^= ky_parse_at(p, '-');
		ky_parse_next(p);
	}
	a->number = a->is_negative ? -p->token.number : p->token.number;
	ky_parse_expect(p, KY_TOKEN_NUMBER, "a value");
}

struct ky_attr ky_attr_parse(struct ky_parser *p)
{
	struct ky_attr a = {.kind = KY_ATTR_NUMBER};

	if (ky_parse_at(p, KY_TOKEN_STRING)) {
		a.kind = KY_ATTR_TEXT;
		a.text = p->token.text;
		ky_parse_next(p);
	} else if (ky_parse_at(p, KY_TOKEN_WORD)) {
		a.kind = KY_ATTR_TEXT;
		a.text = ky_parse_dotted(p);
	} else {
		parse_number(p, &a);
	}
	return a;
}

void ky_attr_once(struct ky_parser *p, const void *owner, const char *key)
{
	uint32_t *seen = p->failed ? NULL : ky_names_at(&p->tsdl->names, owner, key);

	if (!seen)
		ky_parse_fail(p, "the metadata is too large");
	else if (*seen != UINT32_MAX)
		ky_parse_fail(p, "'%.64s' is there twice", key);
	else
		*seen = 0;
}

uint64_t ky_attr_number(struct ky_parser *p, const struct ky_attr *a, uint64_t max)
{
	if (a->kind != KY_ATTR_NUMBER || a->is_negative || a->number > max)
		ky_parse_fail(p, "expected a number from 0 to %llu", (unsigned long long)max);
	return a->number;
}

const char *ky_attr_text(struct ky_parser *p, const struct ky_attr *a)
{
	if (a->kind != KY_ATTR_TEXT)
		ky_parse_fail(p, "expected a string");
	return a->text ? a->text : "";
}

bool ky_attr_is(const struct ky_attr *a, const char *text)
{
	return a->kind == KY_ATTR_TEXT && a->text && !strcasecmp(a->text, text);
}

bool ky_attr_bool(struct ky_parser *p, const struct ky_attr *a)
{
	if (ky_attr_is(a, "true"))
		return true;
	if (!ky_attr_is(a, "false") && a->kind != KY_ATTR_NUMBER)
		ky_parse_fail(p, "expected true or false");
	return a->number;
}

uint8_t ky_attr_base(struct ky_parser *p, const struct ky_attr *a)
{
	static const struct {
		const char *word;
		uint8_t base;
	} words[] = {{"decimal", 10}, {"dec", 10}, {"d", 10}, {"i", 10}, {"u", 10},
		{"hexadecimal", 16}, {"hex", 16}, {"x", 16}, {"p", 16}, {"octal", 8}, {"oct", 8},
		{"o", 8}, {"binary", 2}, {"b", 2}};

	for (size_t i = 0; i < KY_ARRAY_SIZE(words); i++) {
		if (ky_attr_is(a, words[i].word))
			return words[i].base;
	}
	if (a->kind != KY_ATTR_NUMBER || a->is_negative ||
		(a->number != 2 && a->number != 8 && a->number != 10 && a->number != 16))
		ky_parse_fail(p, "expected a base: 2, 8, 10 or 16");
	return (uint8_t)a->number;
}

uint8_t ky_attr_byte_order(struct ky_parser *p, const struct ky_attr *a)
{
	if (ky_attr_is(a, "le"))
		return KY_ORDER_LE;
	if (ky_attr_is(a, "be") || ky_attr_is(a, "network"))
		return KY_ORDER_BE;
	if (!ky_attr_is(a, "native"))
		ky_parse_fail(p, "expected a byte order: le, be, network or native");
	return KY_ORDER_NATIVE;
}

uint32_t ky_attr_align(struct ky_parser *p, const struct ky_attr *a)
{
	uint64_t n = ky_attr_number(p, a, MAX_ALIGN);

	if (!ky_is_pow2(n))
		ky_parse_fail(p, "the alignment is not a power of two");
	return (uint32_t)n;
}

bool ky_attr_is_text(struct ky_parser *p, const struct ky_attr *a)
{
	if (ky_attr_is(a, "UTF8") || ky_attr_is(a, "UTF-8") || ky_attr_is(a, "ASCII"))
		return true;
	if (!ky_attr_is(a, "none"))
		ky_parse_fail(p, "expected an encoding: none, UTF8 or ASCII");
	return false;
}

const char *ky_attr_clock(struct ky_parser *p, const struct ky_attr *a)
{
	const char *text = ky_attr_text(p, a), *end = strrchr(text, '.');

	if (strncmp(text, "clock.", 6) || end < text + 6 || strcmp(end, ".value"))
		return NULL;
	return ky_parse_intern(p, text + 6, (size_t)(end - text - 6));
}
