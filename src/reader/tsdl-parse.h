/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the TSDL parser: tokens and attributes (tsdl-attr.c), types
 * (tsdl-types.c), blocks (tsdl.c). For these files only.
 *
 * Recursive descent. The first error is kept, and makes the current token the end of the text, so
 * that every loop ends. Unfinished types are freed with the arena.
 */
#ifndef READER_TSDL_PARSE_H
#define READER_TSDL_PARSE_H

#include "base/buf.h"
#include "reader/tsdl-lex.h"
#include "reader/types.h"

/* A name of a type that was declared. */
struct ky_declared {
	const void *space;
	const char *name;
	const struct ky_type *type;
	uint32_t shadows; /* the same name's number in an outer scope; UINT32_MAX: none */
};

struct ky_parser {
	struct ky_lexer lexer;
	struct ky_token token;
	struct ky_tsdl *tsdl;
	struct ky_tsdl_error *error;
	bool failed;
	int depth;
	struct ky_declared *declared; /* a stack; owned */
	size_t n_declared, cap_declared;
	size_t scope;	     /* the first declaration of the current scope */
	struct ky_buf words; /* for names of several words */
	bool has_trace, has_byte_order;
	size_t cap_env, cap_clocks, cap_streams, cap_events;
};

/* An attribute's value. TEXT: a string, or words a.b.c */
struct ky_attr {
	enum { KY_ATTR_NUMBER, KY_ATTR_TEXT } kind;
	bool is_negative;
	uint64_t number;  /* two's complement if it is negative */
	const char *text; /* interned */
};

/* --- tokens --- */

/*
 * Stores the first error, with its place, and makes the end of the text the next token: so the
 * parser returns through its callers.
 */
void KY_PRINTF(2, 3) ky_parse_fail(struct ky_parser *p, const char *fmt, ...);
/* Allocates n bytes in the arena. NULL after an error. */
void *ky_parse_alloc(struct ky_parser *p, size_t n);
/* Room for one more element, which is zero, in an array of the arena. NULL after an error. */
void *ky_parse_grow(struct ky_parser *p, void *array, size_t *n, size_t *cap, size_t size);
void ky_parse_next(struct ky_parser *p);
bool ky_parse_at_word(const struct ky_parser *p, const char *word);
bool ky_parse_accept(struct ky_parser *p, int kind);
bool ky_parse_accept_word(struct ky_parser *p, const char *word);
void ky_parse_expect(struct ky_parser *p, int kind, const char *what);
/* The text of a word; NULL after an error. */
const char *ky_parse_word(struct ky_parser *p, const char *what);
const char *ky_parse_intern(struct ky_parser *p, const char *text, size_t len);
/* a.b.c: as one text, and as words followed by NULL. NULL after an error. */
const char *ky_parse_dotted(struct ky_parser *p);
const char *const *ky_parse_path(struct ky_parser *p);

static inline bool ky_parse_at(const struct ky_parser *p, int kind)
{
	return p->token.kind == kind;
}

/* --- attributes --- */

/* Parses the value of an attribute: a number, a string, or words with dots between them. */
struct ky_attr ky_attr_parse(struct ky_parser *p);
/* Refuses a key that owner had already. */
void ky_attr_once(struct ky_parser *p, const void *owner, const char *key);
uint64_t ky_attr_number(struct ky_parser *p, const struct ky_attr *a, uint64_t max);
const char *ky_attr_text(struct ky_parser *p, const struct ky_attr *a);
bool ky_attr_is(const struct ky_attr *a, const char *text);
bool ky_attr_bool(struct ky_parser *p, const struct ky_attr *a);
uint8_t ky_attr_base(struct ky_parser *p, const struct ky_attr *a);
uint8_t ky_attr_byte_order(struct ky_parser *p, const struct ky_attr *a);
uint32_t ky_attr_align(struct ky_parser *p, const struct ky_attr *a);
bool ky_attr_is_text(struct ky_parser *p, const struct ky_attr *a);
/* The clock's name of clock.NAME.value; NULL if it is another mapping. */
const char *ky_attr_clock(struct ky_parser *p, const struct ky_attr *a);

/* --- types --- */

/* NULL after an error. */
const struct ky_type *ky_parse_type(struct ky_parser *p);
/* typealias, typedef, or a named type; false if the text has something else here. */
bool ky_parse_declaration(struct ky_parser *p);
/* Declarations up to leave are forgotten. Returns what leave needs. */
size_t ky_parse_enter_scope(struct ky_parser *p);
void ky_parse_leave_scope(struct ky_parser *p, size_t outer);

#endif
