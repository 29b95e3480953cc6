/* SPDX-License-Identifier: MIT */
/* Every kind of field, by the names of version 1 of the interface. */
#include <stddef.h>
#include <stdint.h>

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER version1

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./version1-tp.h"

#if !defined(VERSION1_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define VERSION1_TP_H

#include <lttng/tracepoint.h>

#ifndef VERSION1_TYPES
#define VERSION1_TYPES
enum version1_kind { VERSION1_SMALL, VERSION1_LARGE = 7 };
struct version1_opaque;
struct version1_pair {
	int first;
	const char *second;
};
#endif

/* clang-format off */
LTTNG_UST_TRACEPOINT_ENUM(version1, size,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_value("NONE", 0)
		lttng_ust_field_enum_value("SMALL", 1)
		lttng_ust_field_enum_range("MEDIUM", 2, 9)
		lttng_ust_field_enum_auto("LARGE")
		lttng_ust_field_enum_range("HUGE", 100, 200)
	)
)

LTTNG_UST_TRACEPOINT_ENUM(version1, sign,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_range("below", -100, -1)
		lttng_ust_field_enum_auto("zero")
		lttng_ust_field_enum_value("above", VERSION1_LARGE)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, integers,
	LTTNG_UST_TP_ARGS(int, n, unsigned long, u, const void *, p),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int8_t, i8, n)
		lttng_ust_field_integer(int16_t, i16, n)
		lttng_ust_field_integer(int32_t, i32, n)
		lttng_ust_field_integer(int64_t, i64, n)
		lttng_ust_field_integer(uint8_t, u8, u)
		lttng_ust_field_integer(uint16_t, u16, u)
		lttng_ust_field_integer(uint32_t, u32, u)
		lttng_ust_field_integer(uint64_t, u64, u)
		lttng_ust_field_integer(char, c, 'A' + (n & 1))
		lttng_ust_field_integer(bool, b, n > 0)
		lttng_ust_field_integer(enum version1_kind, kind, VERSION1_LARGE)
		lttng_ust_field_integer(size_t, size, sizeof(int))
		lttng_ust_field_integer_hex(int, hex, n)
		lttng_ust_field_integer_hex(unsigned long, address, (unsigned long)p)
		lttng_ust_field_integer_hex(const void *, pointer, p)
		lttng_ust_field_integer_hex(uint8_t, hex8, n)
		lttng_ust_field_integer_network(uint16_t, port, (uint16_t)u)
		lttng_ust_field_integer_network_hex(uint32_t, host, (uint32_t)u)
		lttng_ust_field_integer_network(int, signed_network, n)
	)
)
LTTNG_UST_TRACEPOINT_LOGLEVEL(version1, integers, LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO)

LTTNG_UST_TRACEPOINT_EVENT(version1, floats,
	LTTNG_UST_TP_ARGS(float, f, double, d),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_float(float, f32, f)
		lttng_ust_field_float(double, f64, d)
		lttng_ust_field_float(float, narrowed, d)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, texts,
	LTTNG_UST_TP_ARGS(const char *, s, const char *, absent, size_t, len),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_string(whole, s)
		lttng_ust_field_string(null, absent)
		lttng_ust_field_array_text(char, four, s, 4)
		lttng_ust_field_array_text(char, padded, s, 48)
		lttng_ust_field_sequence_text(char, cut, s, size_t, len)
		lttng_ust_field_sequence_text(char, empty, s, unsigned char, 0)
		lttng_ust_field_sequence_text(char, over, s, unsigned int, len + 40)
	)
)
LTTNG_UST_TRACEPOINT_LOGLEVEL(version1, texts, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(version1, texts, "http://example.com/model?q=texts")

LTTNG_UST_TRACEPOINT_EVENT(version1, arrays,
	LTTNG_UST_TP_ARGS(const long *, values, const unsigned char *, bytes, size_t, n, struct version1_opaque **, pointers),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_array(long, longs, values, 3)
		lttng_ust_field_array_hex(unsigned char, hex, bytes, 8)
		lttng_ust_field_array_network(uint16_t, ports, bytes, 2)
		lttng_ust_field_array_network_hex(uint32_t, hosts, bytes, 1)
		lttng_ust_field_array(unsigned char, many, bytes, 100)
		lttng_ust_field_sequence(long, some, values, size_t, n)
		lttng_ust_field_sequence_hex(uint8_t, some_hex, bytes, uint8_t, n)
		lttng_ust_field_sequence_network(uint16_t, some_ports, bytes, unsigned short, n)
		lttng_ust_field_sequence_network_hex(uint32_t, some_hosts, bytes, unsigned int, 1)
		lttng_ust_field_sequence(unsigned char, large, bytes, unsigned int, 100)
		lttng_ust_field_sequence(int, nothing, NULL, unsigned int, 0)
		lttng_ust_field_array_hex(uintptr_t, addresses, pointers, 2)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, enumerations,
	LTTNG_UST_TP_ARGS(int, value, enum version1_kind, kind),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_enum(version1, size, int, as_int, value)
		lttng_ust_field_enum(version1, size, uint8_t, as_byte, value)
		lttng_ust_field_enum(version1, sign, int16_t, sign, value - 5)
		lttng_ust_field_enum(version1, sign, enum version1_kind, kind, kind)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, no_fields, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_LOGLEVEL(version1, no_fields, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM)

LTTNG_UST_TRACEPOINT_EVENT(version1, unused,
	LTTNG_UST_TP_ARGS(int, n, const char *, s),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, n, n)
		lttng_ust_field_unused(s)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, aside,
	LTTNG_UST_TP_ARGS(int, n, const char *, s, const long *, values),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer_nowrite(int, hidden, n * 2)
		lttng_ust_field_integer(int, n, n)
		lttng_ust_field_string_nowrite(secret, s)
		lttng_ust_field_sequence_nowrite(long, some, values, unsigned int, 3)
		lttng_ust_field_enum_nowrite(version1, size, int, size, n)
		lttng_ust_field_float_nowrite(double, half, n / 2.0)
		lttng_ust_field_string(s, s)
		lttng_ust_field_array_nowrite(long, two, values, 2)
		lttng_ust_field_array_text_nowrite(char, first, s, 2)
		lttng_ust_field_sequence_text_nowrite(char, text, s, unsigned int, 2)
	)
)

LTTNG_UST_TRACEPOINT_EVENT(version1, only_aside,
	LTTNG_UST_TP_ARGS(int, n),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_nowrite(int, hidden, n))
)

LTTNG_UST_TRACEPOINT_EVENT(version1, ten,
	LTTNG_UST_TP_ARGS(int, a, int, b, int, c, int, d, int, e, int, f, int, g, int, h, int, i, const struct version1_pair *, j),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, sum, a + b + c + d + e + f + g + h + i + j->first)
		lttng_ust_field_string(text, j->second)
	)
)

LTTNG_UST_TRACEPOINT_EVENT_CLASS(version1, pair_class,
	LTTNG_UST_TP_ARGS(const struct version1_pair *, pair),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, first, pair->first)
		lttng_ust_field_string(second, pair->second)
	)
)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(version1, pair_class, version1, pair_made, LTTNG_UST_TP_ARGS(const struct version1_pair *, pair))
LTTNG_UST_TRACEPOINT_LOGLEVEL(version1, pair_made, LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(version1, pair_class, version1, pair_lost, LTTNG_UST_TP_ARGS(const struct version1_pair *, pair))
LTTNG_UST_TRACEPOINT_LOGLEVEL(version1, pair_lost, LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(version1, pair_class, version1, pair_kept, LTTNG_UST_TP_ARGS(const struct version1_pair *, pair))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
