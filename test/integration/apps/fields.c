/* SPDX-License-Identifier: MIT */
/*
 * One event for each group of field kinds, with extreme values. test-fields.py has the texts that
 * readers must print for them.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/tracepoint.h>

#define LONG_TEXT 65536

KYMO_ENUM(state, KYMO_VALUE("IDLE", 0), KYMO_VALUE("ENDED", -1), KYMO_RANGE("BUSY", 10, 19),
	KYMO_VALUE("a \"quoted\" label", 20))
KYMO_ENUM(big, KYMO_VALUE("TOP", UINT64_MAX), KYMO_RANGE("LOW", 0, 5))

static const int8_t i8s[] = {INT8_MIN, -1, 0, INT8_MAX};
static const int64_t i64s[] = {INT64_MIN, -1, 0, INT64_MAX};
static const uint64_t u64s[] = {0, 1, UINT64_MAX};
static const double doubles[] = {-0.0, DBL_MAX, DBL_TRUE_MIN};
static const int states[] = {0, -1, 12, 20, 999};
static const char *const words[] = {"", "ein", "a much longer word than fits in a few bytes", "ü"};

static void integers(void)
{
	kymo_event(fields, least, kymo_i8(a, INT8_MIN), kymo_i16(b, INT16_MIN),
		kymo_i32(c, INT32_MIN), kymo_i64(d, INT64_MIN), kymo_u8(e, 0), kymo_u16(f, 0),
		kymo_u32(g, 0), kymo_u64(h, 0));
	kymo_event(fields, greatest, kymo_i8(a, INT8_MAX), kymo_i16(b, INT16_MAX),
		kymo_i32(c, INT32_MAX), kymo_i64(d, INT64_MAX), kymo_u8(e, UINT8_MAX),
		kymo_u16(f, UINT16_MAX), kymo_u32(g, UINT32_MAX), kymo_u64(h, UINT64_MAX));
	kymo_event(fields, hex, kymo_x8(a, 0xab), kymo_x16(b, 0xabcd), kymo_x32(c, 0xdeadbeef),
		kymo_x64(d, UINT64_MAX), kymo_ptr(e, (void *)0x1234));
	kymo_event(fields, network, kymo_net16(a, htons(80)), kymo_net32(b, htonl(0x7f000001)),
		kymo_net64(c, htobe64(1)), kymo_netx16(d, htons(0xbeef)),
		kymo_netx32(e, htonl(0xdeadbeef)), kymo_netx64(f, htobe64(0x0102030405060708)));
	kymo_event(fields, bools, kymo_bool(a, 0), kymo_bool(b, 1), kymo_bool(c, 256));
	kymo_event(fields, enums, kymo_enum(a, state, 0), kymo_enum(b, state, -1),
		kymo_enum(c, state, 15), kymo_enum(d, state, 20), kymo_enum(e, state, 77),
		kymo_enum_i8(f, state, -1), kymo_enum_u64(g, big, UINT64_MAX),
		kymo_enum_u8(h, big, 3), kymo_enum_i64(i, state, 11));
}

static void floats(void)
{
	kymo_event(fields, floats, kymo_f32(a, 1.5f), kymo_f32(b, FLT_MAX), kymo_f32(c, -0.0f),
		kymo_f64(d, 0.1), kymo_f64(e, DBL_MAX), kymo_f64(f, DBL_TRUE_MIN),
		kymo_f64(g, -0.0));
	kymo_event(fields, not_numbers, kymo_f32(a, NAN), kymo_f32(b, INFINITY),
		kymo_f32(c, -INFINITY), kymo_f64(d, (double)NAN), kymo_f64(e, (double)INFINITY),
		kymo_f64(f, -(double)INFINITY));
}

static void strings(char *text)
{
	kymo_event(fields, strings, kymo_string(empty, ""), kymo_string(null, NULL),
		kymo_string(utf8, "Grüße, Москва, 日本語, \xf0\x9f\x98\x80"),
		kymo_string(special, "tab\tnewline\nquote\"backslash\\alert\a"),
		kymo_string(last, "end"));
	kymo_event(fields, texts, kymo_text(full, "four", 4), kymo_text(partial, "ab\0\0\0\0\0", 8),
		kymo_text_seq(sequence, "any text", 8), kymo_text_seq(none, NULL, 0),
		kymo_blob(blob, "\0\1\2\xff", 4), kymo_blob(no_blob, NULL, 0));
	for (size_t n = 62; n <= 66; n++) {
		memset(text, 'x', n);
		text[n] = 0;
		kymo_event(fields, near_limit, kymo_u32(n, (uint32_t)n), kymo_string(text, text),
			kymo_u8(mark, 7));
	}
	memset(text, 'y', LONG_TEXT);
	text[LONG_TEXT] = 0;
	kymo_event(fields, long_text, kymo_string(text, text), kymo_blob(blob, text, LONG_TEXT / 2),
		kymo_u8(mark, 7));
}

static void arrays(void)
{
	kymo_event(fields, arrays, kymo_array_i8(a, i8s, 4), kymo_array_i64(b, i64s, 4),
		kymo_array_u64(c, u64s, 3), kymo_array_f64(d, doubles, 3),
		kymo_array_string(e, words, 4), kymo_array_enum(f, state, states, 5));
	kymo_event(fields, sequences, kymo_seq_i8(a, i8s, 4), kymo_seq_i64(b, i64s, 4),
		kymo_seq_u64(c, u64s, 3), kymo_seq_f64(d, doubles, 3), kymo_seq_string(e, words, 4),
		kymo_seq_enum(f, state, states, 5));
	kymo_event(fields, no_elements, kymo_seq_i8(a, NULL, 0), kymo_seq_i64(b, NULL, 0),
		kymo_seq_string(c, NULL, 0), kymo_seq_enum(d, state, NULL, 0), kymo_u8(mark, 7));
}

static void counts(void)
{
	kymo_event(fields, none);
	kymo_event(fields, many, kymo_u8(f0, 0), kymo_u16(f1, 1), kymo_u32(f2, 2), kymo_u64(f3, 3),
		kymo_u8(f4, 4), kymo_u16(f5, 5), kymo_u32(f6, 6), kymo_u64(f7, 7), kymo_u8(f8, 8),
		kymo_u16(f9, 9), kymo_u32(f10, 10), kymo_u64(f11, 11), kymo_u8(f12, 12),
		kymo_u16(f13, 13), kymo_u32(f14, 14), kymo_u64(f15, 15), kymo_u8(f16, 16),
		kymo_u16(f17, 17), kymo_u32(f18, 18), kymo_u64(f19, 19), kymo_u8(f20, 20),
		kymo_u16(f21, 21), kymo_u32(f22, 22), kymo_u64(f23, 23), kymo_u8(f24, 24),
		kymo_u16(f25, 25), kymo_u32(f26, 26), kymo_u64(f27, 27), kymo_u8(f28, 28),
		kymo_u16(f29, 29), kymo_u32(f30, 30), kymo_string(f31, "last"));
}

/* Emits a few events of normal size around one that is larger than any block of the test's ring. */
static void too_big(char *text)
{
	memset(text, 'z', LONG_TEXT);
	text[LONG_TEXT] = 0;
	for (uint32_t i = 0; i < 10; i++) {
		kymo_event(fields, small, kymo_u32(i, i));
		kymo_event(fields, too_big, kymo_u32(i, i), kymo_string(text, text));
	}
}

int main(int argc, char **argv)
{
	char *text = malloc(LONG_TEXT + 1);

	if (!text)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "too-big")) {
		too_big(text);
	} else {
		integers();
		floats();
		strings(text);
		arrays();
		counts();
	}
	free(text);
	return 0;
}
