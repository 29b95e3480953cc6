/* SPDX-License-Identifier: MIT */
/*
 * Writes strings in quotes, 16 bytes at a time. Both formats do; they differ in the characters that
 * they cannot write as they are. Everything is inlined into the format, which gives a constant
 * struct ky_quoting.
 */
#ifndef READER_QUOTE_H
#define READER_QUOTE_H

#include "base/utf8.h"
#include "reader/decode.h"
#include "reader/put.h"

typedef unsigned char ky_piece __attribute__((vector_size(16)));

struct ky_quoting {
	bool is_c;	     /* as in C, where ' and ? are special, too */
	const char *letters; /* of special characters below 128: not 0 */
	/* Writes the special character at s. Returns in *ret_len how many bytes of s it has. */
	char *(*put_special)(struct ky_put *p, char *to, const char *s, size_t n, size_t *ret_len);
};

static inline bool ky_quote_is_plain(const struct ky_quoting *q, unsigned char c)
{
	return c >= 0x20 && c < 0x7f && !q->letters[c];
}

/* Copies a piece. Returns how many bytes come before one that is special, or may be. */
static inline __attribute__((always_inline)) size_t ky_quote_piece(
	const struct ky_quoting *q, char *to, const char *s)
{
	typedef uint64_t words __attribute__((vector_size(sizeof(ky_piece))));
	ky_piece b;
	words bad;

	memcpy(&b, s, sizeof(b));
	memcpy(to, &b, sizeof(b));
	bad = (words)((b < 0x20) | (b >= 0x7f) | (b == '"') | (b == '\\'));
	if (q->is_c)
		bad |= (words)((b == '\'') | (b == '?'));
	if (bad[0])
		return (size_t)__builtin_ctzll(le64toh(bad[0])) / 8;
	return bad[1] ? 8 + (size_t)__builtin_ctzll(le64toh(bad[1])) / 8 : sizeof(b);
}

static inline __attribute__((always_inline)) char *ky_quote_string(
	const struct ky_quoting *q, struct ky_put *p, char *to, const char *s, size_t n)
{
	size_t i = 0, len;

	to = ky_put_char(ky_put_room(p, to, 1), '"');
	while (i < n) {
		size_t end = i + KY_MIN(n - i, sizeof(ky_piece));

		to = ky_put_room(p, to, sizeof(ky_piece) + 4);
		if (end - i == sizeof(ky_piece) &&
			ky_quote_piece(q, to, s + i) == sizeof(ky_piece)) {
			to += sizeof(ky_piece);
			i = end;
			continue;
		}
		while (i < end && ky_quote_is_plain(q, (unsigned char)s[i]))
			to = ky_put_char(to, s[i++]);
		if (i < end) {
			to = q->put_special(p, to, s + i, n - i, &len);
			i += len;
		}
	}
	return ky_put_char(ky_put_room(p, to, 1), '"');
}

/*
 * Writes the text that step s finds at *at: of s->bytes characters, or up to its NUL, behind which
 * *at is then. The decoder has checked that it ends before bytes_end.
 */
static inline __attribute__((always_inline)) char *ky_quote_step(const struct ky_quoting *q,
	struct ky_put *p, char *to, const struct ky_step *s, const uint8_t **at,
	const uint8_t *bytes_end)
{
	const char *text = (const char *)*at;
	size_t n = sizeof(ky_piece);

	to = ky_put_room(p, to, sizeof(ky_piece) + 4);
	if (ky_likely((size_t)(bytes_end - *at) >= sizeof(ky_piece)))
		n = ky_quote_piece(q, to + 1, text);
	if (ky_likely(n < (s->bytes ? s->bytes : sizeof(ky_piece)) && n < sizeof(ky_piece) &&
		      !text[n])) {
		*to = '"';
		to = ky_put_char(to + 1 + n, '"');
	} else {
		n = s->bytes ? ky_text_length(text, s->bytes, KY_UTF_8) : strlen(text);
		to = ky_quote_string(q, p, to, text, n);
	}
	*at += s->bytes ? 0 : n + 1;
	return to;
}

#endif
