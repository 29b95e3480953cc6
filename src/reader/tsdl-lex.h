/* SPDX-License-Identifier: MIT */
/*
 * Tokens of TSDL, the description language of CTF 1.8. Called by the parser only. The text may hold
 * anything, also NULs. The texts of tokens are interned.
 */
#ifndef READER_TSDL_LEX_H
#define READER_TSDL_LEX_H

#include "reader/names.h"

enum ky_token_kind {
	KY_TOKEN_END = 0,     /* end of the text, or after an error */
	KY_TOKEN_WORD = 256,  /* identifier or keyword */
	KY_TOKEN_NUMBER,      /* without sign */
	KY_TOKEN_STRING,      /* in double or single quotes; unescaped */
	KY_TOKEN_ELLIPSIS,    /* ... */
	KY_TOKEN_TYPE_ASSIGN, /* := */
			      /* every other kind is the character itself */
};

struct ky_token {
	int kind;
	uint64_t number;
	const char *text;      /* WORD, STRING */
	unsigned line, column; /* from 1 */
};

struct ky_lexer {
	const char *p, *end;
	struct ky_names *names;
	unsigned line;
	const char *line_start;
	const char *error; /* why the text ends here; NULL: no error */
	bool is_cut;	   /* the text ended within a comment */
};

void ky_lexer_init(struct ky_lexer *l, struct ky_names *names, const char *text, size_t len);
/* Returns whether the text ends here, perhaps within a token. */
bool ky_lexer_is_at_end(const struct ky_lexer *l);
/* Fills in *t. After an error (l->error) every token is KY_TOKEN_END. */
void ky_lexer_next(struct ky_lexer *l, struct ky_token *t);

#endif
