/* SPDX-License-Identifier: MIT */
/*
 * Writes the text of events: numbers and pieces go to `to`, and each function returns the place
 * behind them. So that place stays in a register, and ky_put_end stores it in the buffer once. The
 * caller has reserved the room before, with ky_put_room.
 *
 * If the buffer fails (it has the error), all later text overwrites `waste` again and again.
 */
#ifndef READER_PUT_H
#define READER_PUT_H

#include <endian.h>

#include "base/buf.h"

#define KY_PUT_MAX    256 /* bytes that can be asked for at once */
#define KY_PUT_NUMBER 24  /* bytes that a number in decimal may touch */

struct ky_put {
	struct ky_buf *out; /* borrowed */
	char *end;	    /* of the room that there is */
	char waste[KY_PUT_MAX];
};

/* Makes room behind the contents of the buffer. Returns its begin. */
char *ky_put_more(struct ky_put *p);

/* Begins to write. Returns the first place. */
static inline char *ky_put_begin(struct ky_put *p, struct ky_buf *out)
{
	p->out = out;
	if (ky_unlikely(!out->data))
		return ky_put_more(p);
	p->end = out->data + out->cap;
	return out->data + out->len;
}

static inline void ky_put_end(struct ky_put *p, const char *to)
{
	if (!p->out->error)
		p->out->len = (size_t)(to - p->out->data);
}

/*
 * Returns true if the buffer has failed: then loops end, because nothing more is written. A loop
 * that leaves values unread is the last but for those around it, which check this, too.
 */
static inline bool ky_put_failed(const struct ky_put *p)
{
	return p->out->error;
}

/* Reserves n bytes at to, at most KY_PUT_MAX. Returns their place. */
static inline char *ky_put_room(struct ky_put *p, char *to, size_t n)
{
	if (ky_likely(n <= (size_t)(p->end - to)))
		return to;
	ky_put_end(p, to);
	return ky_put_more(p);
}

/* Writes any number of bytes, for which it makes room. */
char *ky_put_long(struct ky_put *p, char *to, const void *s, size_t n);
static inline char *ky_put_bytes(struct ky_put *p, char *to, const void *s, size_t n)
{
	if (ky_unlikely(n > (size_t)(p->end - to)))
		return ky_put_long(p, to, s, n);
	memcpy(to, s, n);
	return to + n;
}

/* --- into room that there is --- */

static inline char *ky_put_char(char *to, char c)
{
	*to = c;
	return to + 1;
}

#define ky_put_literal(to, s) ((char *)memcpy(to, s, sizeof(s) - 1) + sizeof(s) - 1)

/*
 * Eight decimal digits of v < 100000000, one in each byte, the first in the lowest: halves, then
 * quarters, then digits, all of them at once, with multiplications for divisions.
 */
static inline uint64_t ky_digits(uint32_t v)
{
	uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32, y;

	y = x * 5243 >> 19 & 0x0000007f0000007f;
	x = y | (x - 100 * y) << 16;
	y = x * 103 >> 10 & 0x000f000f000f000f;
	return y | (x - 10 * y) << 8;
}

/* Writes all eight digits. */
static inline char *ky_put_digits(char *to, uint32_t v)
{
	uint64_t digits = htole64(ky_digits(v) | 0x3030303030303030);

	memcpy(to, &digits, sizeof(digits));
	return to + sizeof(digits);
}

/* For ky_put_u64: a number of more than eight digits. */
char *ky_put_u64_long(char *to, uint64_t v);
/* Writes v in decimal. It may touch KY_PUT_NUMBER bytes; so may ky_put_i64. */
static inline char *ky_put_u64(char *to, uint64_t v)
{
	uint64_t digits;
	int n_zeros;

	if (v < 10)
		return ky_put_char(to, (char)('0' + v));
	if (v >= 100000000)
		return ky_put_u64_long(to, v);
	digits = ky_digits((uint32_t)v);
	n_zeros = __builtin_ctzll(digits) / 8;
	digits = htole64((digits | 0x3030303030303030) >> 8 * n_zeros);
	memcpy(to, &digits, sizeof(digits));
	return to + 8 - n_zeros;
}

static inline char *ky_put_i64(char *to, int64_t v)
{
	*to = '-';
	return v < 0 ? ky_put_u64(to + 1, -(uint64_t)v) : ky_put_u64(to, (uint64_t)v);
}

/* Eight digits of base 16 as characters, the first in the lowest byte: all of them at once. */
static inline uint64_t ky_hex_digits(uint32_t v)
{
	uint64_t x = v, letters;

	x = (x | x << 16) & 0x0000ffff0000ffff;
	x = (x | x << 8) & 0x00ff00ff00ff00ff;
	x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
	letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
	return __builtin_bswap64(x + 0x3030303030303030 + letters * ('A' - '0' - 10));
}

/* Writes v in base 16. It may touch KY_PUT_NUMBER bytes. */
static inline char *ky_put_hex(char *to, uint64_t v)
{
	uint64_t halves[4] = {
		htole64(ky_hex_digits((uint32_t)(v >> 32))), htole64(ky_hex_digits((uint32_t)v))};
	unsigned n_zeros = (unsigned)__builtin_clzll(v | 1) / 4;

	memcpy(to, (const char *)halves + n_zeros, 16);
	return to + 16 - n_zeros;
}

/* Writes v as printf's "%g" does. It may touch 32 bytes. */
char *ky_put_g(char *to, double v);

/* Writes ".nnnnnnnnn". ns < 1000000000. */
static inline char *ky_put_fraction(char *to, uint32_t ns)
{
	to[0] = '.';
	to[1] = (char)('0' + ns / 100000000);
	return ky_put_digits(to + 2, ns % 100000000);
}

#endif
