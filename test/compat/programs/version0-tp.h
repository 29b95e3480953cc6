/* SPDX-License-Identifier: MIT */
/* Every kind of field, by the names of version 0 of the interface. */
#include <stddef.h>
#include <stdint.h>

#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER version0

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./version0-tp.h"

#if !defined(VERSION0_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define VERSION0_TP_H

#include <lttng/tracepoint.h>

#ifndef VERSION0_TYPES
#define VERSION0_TYPES
enum version0_kind { VERSION0_SMALL, VERSION0_LARGE = 7 };
struct version0_opaque;
struct version0_pair {
	int first;
	const char *second;
};
#endif

/* clang-format off */
TRACEPOINT_ENUM(version0, size,
	TP_ENUM_VALUES(
		ctf_enum_value("NONE", 0)
		ctf_enum_value("SMALL", 1)
		ctf_enum_range("MEDIUM", 2, 9)
		ctf_enum_auto("LARGE")
		ctf_enum_range("HUGE", 100, 200)
	)
)

TRACEPOINT_ENUM(version0, sign,
	TP_ENUM_VALUES(
		ctf_enum_range("below", -100, -1)
		ctf_enum_auto("zero")
		ctf_enum_value("above", VERSION0_LARGE)
	)
)

TRACEPOINT_EVENT(version0, integers,
	TP_ARGS(int, n, unsigned long, u, const void *, p),
	TP_FIELDS(
		ctf_integer(int8_t, i8, n)
		ctf_integer(int16_t, i16, n)
		ctf_integer(int32_t, i32, n)
		ctf_integer(int64_t, i64, n)
		ctf_integer(uint8_t, u8, u)
		ctf_integer(uint16_t, u16, u)
		ctf_integer(uint32_t, u32, u)
		ctf_integer(uint64_t, u64, u)
		ctf_integer(char, c, 'A' + (n & 1))
		ctf_integer(bool, b, n > 0)
		ctf_integer(enum version0_kind, kind, VERSION0_LARGE)
		ctf_integer(size_t, size, sizeof(int))
		ctf_integer_hex(int, hex, n)
		ctf_integer_hex(unsigned long, address, (unsigned long)p)
		ctf_integer_hex(const void *, pointer, p)
		ctf_integer_hex(uint8_t, hex8, n)
		ctf_integer_network(uint16_t, port, (uint16_t)u)
		ctf_integer_network_hex(uint32_t, host, (uint32_t)u)
		ctf_integer_network(int, signed_network, n)
	)
)
TRACEPOINT_LOGLEVEL(version0, integers, TRACE_INFO)

TRACEPOINT_EVENT(version0, floats,
	TP_ARGS(float, f, double, d),
	TP_FIELDS(
		ctf_float(float, f32, f)
		ctf_float(double, f64, d)
		ctf_float(float, narrowed, d)
	)
)

TRACEPOINT_EVENT(version0, texts,
	TP_ARGS(const char *, s, const char *, absent, size_t, len),
	TP_FIELDS(
		ctf_string(whole, s)
		ctf_string(null, absent)
		ctf_array_text(char, four, s, 4)
		ctf_array_text(char, padded, s, 48)
		ctf_sequence_text(char, cut, s, size_t, len)
		ctf_sequence_text(char, empty, s, unsigned char, 0)
		ctf_sequence_text(char, over, s, unsigned int, len + 40)
	)
)
TRACEPOINT_LOGLEVEL(version0, texts, TRACE_WARNING)
TRACEPOINT_MODEL_EMF_URI(version0, texts, "http://example.com/model?q=texts")

TRACEPOINT_EVENT(version0, arrays,
	TP_ARGS(const long *, values, const unsigned char *, bytes, size_t, n, struct version0_opaque **, pointers),
	TP_FIELDS(
		ctf_array(long, longs, values, 3)
		ctf_array_hex(unsigned char, hex, bytes, 8)
		ctf_array_network(uint16_t, ports, bytes, 2)
		ctf_array_network_hex(uint32_t, hosts, bytes, 1)
		ctf_array(unsigned char, many, bytes, 100)
		ctf_sequence(long, some, values, size_t, n)
		ctf_sequence_hex(uint8_t, some_hex, bytes, uint8_t, n)
		ctf_sequence_network(uint16_t, some_ports, bytes, unsigned short, n)
		ctf_sequence_network_hex(uint32_t, some_hosts, bytes, unsigned int, 1)
		ctf_sequence(unsigned char, large, bytes, unsigned int, 100)
		ctf_sequence(int, nothing, NULL, unsigned int, 0)
		ctf_array_hex(uintptr_t, addresses, pointers, 2)
	)
)

TRACEPOINT_EVENT(version0, enumerations,
	TP_ARGS(int, value, enum version0_kind, kind),
	TP_FIELDS(
		ctf_enum(version0, size, int, as_int, value)
		ctf_enum(version0, size, uint8_t, as_byte, value)
		ctf_enum(version0, sign, int16_t, sign, value - 5)
		ctf_enum(version0, sign, enum version0_kind, kind, kind)
	)
)

TRACEPOINT_EVENT(version0, no_fields, TP_ARGS(), TP_FIELDS())
TRACEPOINT_LOGLEVEL(version0, no_fields, TRACE_DEBUG_SYSTEM)

TRACEPOINT_EVENT(version0, unused,
	TP_ARGS(int, n, const char *, s),
	TP_FIELDS(
		ctf_integer(int, n, n)
		ctf_unused(s)
	)
)

TRACEPOINT_EVENT(version0, aside,
	TP_ARGS(int, n, const char *, s, const long *, values),
	TP_FIELDS(
		ctf_integer_nowrite(int, hidden, n * 2)
		ctf_integer(int, n, n)
		ctf_string_nowrite(secret, s)
		ctf_sequence_nowrite(long, some, values, unsigned int, 3)
		ctf_enum_nowrite(version0, size, int, size, n)
		ctf_float_nowrite(double, half, n / 2.0)
		ctf_string(s, s)
		ctf_array_nowrite(long, two, values, 2)
		ctf_array_text_nowrite(char, first, s, 2)
		ctf_sequence_text_nowrite(char, text, s, unsigned int, 2)
	)
)

TRACEPOINT_EVENT(version0, only_aside,
	TP_ARGS(int, n),
	TP_FIELDS(ctf_integer_nowrite(int, hidden, n))
)

TRACEPOINT_EVENT(version0, ten,
	TP_ARGS(int, a, int, b, int, c, int, d, int, e, int, f, int, g, int, h, int, i, const struct version0_pair *, j),
	TP_FIELDS(
		ctf_integer(int, sum, a + b + c + d + e + f + g + h + i + j->first)
		ctf_string(text, j->second)
	)
)

TRACEPOINT_EVENT_CLASS(version0, pair_class,
	TP_ARGS(const struct version0_pair *, pair),
	TP_FIELDS(
		ctf_integer(int, first, pair->first)
		ctf_string(second, pair->second)
	)
)
TRACEPOINT_EVENT_INSTANCE(version0, pair_class, pair_made, TP_ARGS(const struct version0_pair *, pair))
TRACEPOINT_LOGLEVEL(version0, pair_made, TRACE_EMERG)
TRACEPOINT_EVENT_INSTANCE(version0, pair_class, pair_lost, TP_ARGS(const struct version0_pair *, pair))
TRACEPOINT_LOGLEVEL(version0, pair_lost, TRACE_DEBUG)
TRACEPOINT_EVENT_INSTANCE(version0, pair_class, pair_kept, TP_ARGS(const struct version0_pair *, pair))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
