/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

/* Checks a code against the smallest code of its length: an overlong form is not UTF-8. */
static bool is_code(uint32_t code, size_t len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

	return code >= least[len] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

size_t ky_utf8_length(const char *p, size_t n, uint32_t *ret_code, bool *ret_harmless)
{
	unsigned char c = (unsigned char)*p;
	size_t len = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
	uint32_t code = len == 1 ? c : c & (0x7f >> len);

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (p[i] & 0x3f);
	}
	*ret_code = code;
	*ret_harmless = code >= 0x20 && (code < 0x7f || code > 0x9f) &&
			!(code >= 0x202a && code <= 0x202e) &&
			!(code >= 0x2066 && code <= 0x2069) && code != 0x200e && code != 0x200f &&
			code != 0x061c && code != 0x2028 && code != 0x2029;
	return is_code(code, len) ? len : 0;
}

bool ky_utf8_valid(const char *p, size_t n)
{
	uint32_t code;
	bool harmless;
	size_t len;

	for (; n; p += len, n -= len) {
		len = ky_utf8_length(p, n, &code, &harmless);
		if (!len)
			return false;
	}
	return true;
}
