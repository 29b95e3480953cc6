/* SPDX-License-Identifier: MIT */
#include "reader/put.h"

#include <float.h>
#include <math.h>

#include "base/text.h"

char *ky_put_more(struct ky_put *p)
{
	struct ky_buf *out = p->out;

	if (ky_buf_reserve(out, KY_PUT_MAX)) {
		p->end = out->data + out->cap;
		return out->data + out->len;
	}
	p->end = p->waste + sizeof(p->waste);
	return p->waste;
}

char *ky_put_long(struct ky_put *p, char *to, const void *s, size_t n)
{
	for (size_t piece; n && !ky_put_failed(p); n -= piece, s = (const char *)s + piece) {
		piece = KY_MIN(n, (size_t)KY_PUT_MAX);
		to = ky_put_room(p, to, piece);
		memcpy(to, s, piece);
		to += piece;
	}
	return to;
}

char *ky_put_u64_long(char *to, uint64_t v)
{
	return ky_put_digits(ky_put_u64(to, v / 100000000), (uint32_t)(v % 100000000));
}

/* Writes n digits of v, with zeros in front. */
static char *put_padded(char *to, uint32_t v, int n)
{
	for (int i = n; i-- > 0; v /= 10)
		to[i] = (char)('0' + v % 10);
	return to + n;
}

/* Writes n digits, which begin at the power e of ten, without an exponent. -4 <= e <= 5. */
static char *put_fixed(char *to, uint32_t digits, int n, int e)
{
	static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000};

	if (e < 0) {
		to = put_padded(to, 0, 1);
		to = put_padded(ky_put_char(to, '.'), 0, -e - 1);
		return put_padded(to, digits, n);
	}
	if (n <= e + 1)
		return put_padded(to, digits * tens[e + 1 - n], e + 1);
	to = put_padded(to, digits / tens[n - e - 1], e + 1);
	return put_padded(ky_put_char(to, '.'), digits % tens[n - e - 1], n - e - 1);
}

/* True if the product with a power of ten, up to 1e9, has no rounding: 43 bits and 21 for 5^9. */
static bool is_short(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return LDBL_MANT_DIG >= 64 && !(bits & 1023);
}

static char *print_g(char *to, double v)
{
	snprintf(to, 32, "%g", v);
	return to + ky_put_decimal_point(to);
}

/*
 * Six digits are exact in a long double, but for its rounding: numbers next to the middle between
 * two of them, and those that have an exponent, are left to printf. In the middle, the even digit
 * is printf's.
 */
char *ky_put_g(char *to, double v)
{
	static const double tens[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
	static const double scales[] = {1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1e0};
	double positive = v < 0 ? -v : v;
	long double scaled, rest;
	uint32_t digits;
	int e = 0, n = 6;

	if (!positive)
		return ky_put_char(signbit(v) ? ky_put_char(to, '-') : to, '0');
	if (!(positive >= 1e-3 && positive < 999999))
		return print_g(to, v);
	while (positive >= tens[e + 1])
		e++;
	scaled = (long double)positive * scales[e];
	digits = (uint32_t)scaled;
	rest = scaled - digits;
	if (rest == 0.5L && is_short(positive))
		digits += digits & 1;
	else if (rest > 0.5L - 1e-9L && rest < 0.5L + 1e-9L)
		return print_g(to, v);
	else
		digits += rest > 0.5L;
	if (digits == 1000000) {
		digits = 100000;
		e++;
	}
	for (; digits % 10 == 0; n--)
		digits /= 10;
	if (v < 0)
		to = ky_put_char(to, '-');
	return put_fixed(to, digits, n, e - 4);
}
