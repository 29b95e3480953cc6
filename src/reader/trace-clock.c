/* SPDX-License-Identifier: MIT */
#include "reader/trace-clock.h"

#define NS_PER_S 1000000000

static uint64_t cycles_to_ns(uint64_t freq, uint64_t cycles)
{
	double ns;

	if (freq == NS_PER_S)
		return cycles;
	ns = 1e9 * (double)cycles / (double)freq;
	return ns >= 0x1p64 ? UINT64_MAX : (uint64_t)ns;
}

static int64_t saturate(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

void ky_trace_clock_prepare(struct ky_trace_clock *c)
{
	__int128 s = (__int128)c->offset_s + c->offset / c->freq;

	c->base_ns = saturate(s * NS_PER_S + cycles_to_ns(c->freq, c->offset % c->freq));
}

int64_t ky_trace_clock_ns(const struct ky_trace_clock *c, uint64_t value)
{
	return saturate((__int128)c->base_ns + cycles_to_ns(c->freq, value));
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool ky_uuid_parse(uint8_t uuid[16], const char *text)
{
	for (int i = 0; i < 16; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *text++ != '-')
			return false;
		high = hex_digit(text[0]);
		low = high < 0 ? -1 : hex_digit(text[1]);
		if (low < 0)
			return false;
		uuid[i] = (uint8_t)(high << 4 | low);
		text += 2;
	}
	return !*text;
}
