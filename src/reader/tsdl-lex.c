/* SPDX-License-Identifier: MIT */
#include "reader/tsdl-lex.h"

void ky_lexer_init(struct ky_lexer *l, struct ky_names *names, const char *text, size_t len)
{
	*l = (struct ky_lexer){
		.p = text, .end = text + len, .names = names, .line = 1, .line_start = text};
}

/* After a crash, a file system may leave zeros in a file. */
static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || !c;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Steps over one character, counting lines. */
static void step(struct ky_lexer *l)
{
	if (*l->p++ == '\n') {
		l->line++;
		l->line_start = l->p;
	}
}

static bool starts(const struct ky_lexer *l, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(l->end - l->p) >= n && !memcmp(l->p, with, n);
}

static void skip_comment(struct ky_lexer *l)
{
	if (l->p[1] == '/') {
		while (l->p < l->end && *l->p != '\n')
			l->p++;
		return;
	}
	l->p += 2;
	while (l->p < l->end && !starts(l, "*/"))
		step(l);
	l->is_cut = l->p == l->end;
	if (!l->is_cut)
		l->p += 2;
}

static void skip_blanks(struct ky_lexer *l)
{
	while (!l->error && l->p < l->end) {
		if (is_space(*l->p))
			step(l);
		else if (starts(l, "/*") || starts(l, "//"))
			skip_comment(l);
		else
			return;
	}
}

/* The bytes of the next character of a word: 0 if there is none. \u00e9 and \U000000e9 are one. */
static size_t word_length(const struct ky_lexer *l)
{
	size_t n = starts(l, "\\u") ? 6 : starts(l, "\\U") ? 10 : 1;

	if (l->p == l->end || n > (size_t)(l->end - l->p))
		return 0;
	for (size_t i = 2; i < n; i++) {
		if (digit_value(l->p[i]) == 16)
			return 0;
	}
	return n > 1 || is_word(*l->p) ? n : 0;
}

static void lex_word(struct ky_lexer *l, struct ky_token *t)
{
	const char *start = l->p;
	size_t n;

	while ((n = word_length(l)))
		l->p += n;
	t->kind = KY_TOKEN_WORD;
	t->text = ky_names_intern(l->names, start, (size_t)(l->p - start));
	if (!t->text)
		l->error = "the metadata is too large";
}

static void lex_number(struct ky_lexer *l, struct ky_token *t)
{
	unsigned base = *l->p == '0' ? 8 : 10;
	const char *first = l->p;

	if (starts(l, "0x") || starts(l, "0X")) {
		base = 16;
		l->p += 2;
		first = l->p;
	}
	t->kind = KY_TOKEN_NUMBER;
	for (; l->p < l->end && digit_value(*l->p) < (int)base; l->p++) {
		if (__builtin_mul_overflow(t->number, base, &t->number) ||
			__builtin_add_overflow(t->number, (unsigned)digit_value(*l->p), &t->number))
			l->error = "the number is too large";
	}
	if (l->p == first)
		l->error = "a number has no digits";
	while (l->p < l->end && strchr("uUlL", *l->p) && *l->p)
		l->p++;
	if (l->p < l->end && is_word(*l->p))
		l->error = "a number ends in a letter";
}

static char simple_escape(char c)
{
	static const char from[] = "abefnrtv", to[] = "\a\b\033\f\n\r\t\v";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : c;
}

/* Three digits at most, of \x too: what follows is text again, as in babeltrace2. */
static char lex_number_escape(struct ky_lexer *l)
{
	unsigned v = 0, base = *l->p == 'x' ? 16 : 8;
	const char *end;

	if (base == 16)
		l->p++;
	end = KY_MIN(l->p + 3, l->end);
	while (l->p < end && digit_value(*l->p) < (int)base)
		v = v * base + (unsigned)digit_value(*l->p++);
	return (char)v;
}

/* The character behind a backslash; l->p is on its first letter. */
static char lex_escape(struct ky_lexer *l)
{
	char c = *l->p;

	if (c == 'x' || digit_value(c) < 8)
		return lex_number_escape(l);
	step(l);
	return simple_escape(c);
}

/* l->p is on the quote that opens the string. An unescaped string is never longer. */
static void lex_string(struct ky_lexer *l, struct ky_token *t)
{
	char quote = *l->p, *text, *to;
	const char *close = ++l->p;

	while (close < l->end && *close != quote)
		close += *close == '\\' ? 2 : 1;
	if (close >= l->end) {
		l->error = "a string is not closed";
		l->p = l->end;
		return;
	}
	t->kind = KY_TOKEN_STRING;
	text = to = malloc((size_t)(close - l->p) + 1);
	while (text && l->p < close) {
		if (*l->p == '\\') {
			l->p++;
			*to++ = lex_escape(l);
		} else {
			*to++ = *l->p;
			step(l);
		}
	}
	t->text = text ? ky_names_intern(l->names, text, (size_t)(to - text)) : NULL;
	if (!t->text)
		l->error = "the metadata is too large";
	free(text);
	l->p = close + 1;
}

static void lex_punctuation(struct ky_lexer *l, struct ky_token *t)
{
	if (starts(l, "...")) {
		t->kind = KY_TOKEN_ELLIPSIS;
		l->p += 3;
	} else if (starts(l, ":=")) {
		t->kind = KY_TOKEN_TYPE_ASSIGN;
		l->p += 2;
	} else if (*l->p && strchr("{}[]()<>;:,=.*-+", *l->p)) {
		t->kind = (unsigned char)*l->p++;
	} else {
		l->error = "unexpected character";
	}
}

/* L"text" and L'c' mean the same as without the L. */
static bool is_wide_string(struct ky_lexer *l)
{
	if (!starts(l, "L\"") && !starts(l, "L'"))
		return false;
	l->p++;
	return true;
}

/* The begin of a comment, of an ellipsis or of an escape is no token. */
bool ky_lexer_is_at_end(const struct ky_lexer *l)
{
	size_t left = (size_t)(l->end - l->p);

	if (!left || starts(l, "\\"))
		return left < sizeof("\\U000000e9") - 1;
	return (left == 1 && (*l->p == '/' || *l->p == '.')) || (left == 2 && starts(l, ".."));
}

void ky_lexer_next(struct ky_lexer *l, struct ky_token *t)
{
	skip_blanks(l);
	*t = (struct ky_token){.kind = KY_TOKEN_END,
		.line = l->line,
		.column = (unsigned)(l->p - l->line_start) + 1};
	if (l->error || l->p == l->end)
		return;
	if (is_digit(*l->p))
		lex_number(l, t);
	else if (word_length(l) && !is_wide_string(l))
		lex_word(l, t);
	else if (*l->p == '"' || *l->p == '\'')
		lex_string(l, t);
	else
		lex_punctuation(l, t);
	if (l->error)
		t->kind = KY_TOKEN_END;
}
