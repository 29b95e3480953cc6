/* SPDX-License-Identifier: MIT */
/*
 * Words of TSDL, the description language of CTF 1.8. Called by the parser only. The text may hold
 * anything, also NULs; strings that tokens carry live in the arena.
 */
#ifndef READER_TSDL_LEX_H
#define READER_TSDL_LEX_H

#include "reader/arena.h"

enum ky_token_kind {
	KY_TOKEN_END = 0,     /* end of the text, or after an error */
	KY_TOKEN_WORD = 256,  /* identifier or keyword */
	KY_TOKEN_NUMBER,      /* without sign */
	KY_TOKEN_STRING,      /* unescaped */
	KY_TOKEN_ELLIPSIS,    /* ... */
	KY_TOKEN_TYPE_ASSIGN, /* := */
			      /* every other kind is the character itself */
};

struct ky_token {
	int kind;
	uint64_t number;
	const char *text;      /* WORD, STRING: NUL-terminated, in the arena */
	unsigned line, column; /* from 1 */
};

struct ky_lexer {
	const char *p, *end;
	struct ky_arena *arena;
	unsigned line;
	const char *line_start;
	const char *error; /* not NULL after a token that is none */
};

void ky_lexer_init(struct ky_lexer *l, struct ky_arena *arena, const char *text, size_t len);
/* Fills *t in. After an error (l->error says which) the token is KY_TOKEN_END, for ever. */
void ky_lexer_next(struct ky_lexer *l, struct ky_token *t);

#endif
