/* SPDX-License-Identifier: MIT */
/* What providers do besides fields of every kind: order, names of both versions, names that are long, sources that are no plain values. */
#include <stddef.h>
#include <stdint.h>

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER variety

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./variety-tp.h"

#if !defined(VARIETY_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define VARIETY_TP_H

#include <lttng/tracepoint.h>

#ifndef VARIETY_TYPES
#define VARIETY_TYPES
struct variety_packet {
	unsigned version : 3;
	int offset : 5;
	uint64_t flow : 40;
	uint8_t mac[6];
	uint16_t ports[2];
	char name[8];
	int32_t matrix[2][3];
	const struct variety_packet *next;
	size_t len;
	unsigned char data[24];
};
static inline int variety_sum(const struct variety_packet *p)
{
	return p ? (int)p->version + variety_sum(p->next) : 0;
}
#endif

/* clang-format off */
/* A class, and an enumeration, behind what uses it; a log level and a URI before the event. */
TRACEPOINT_LOGLEVEL(variety, early, TRACE_WARNING)
TRACEPOINT_MODEL_EMF_URI(variety, early, "http://example.com/early")
TRACEPOINT_EVENT_INSTANCE(variety, late, early, TP_ARGS(int, n, const char *, s))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(variety, late, variety, mixed, LTTNG_UST_TP_ARGS(int, n, const char *, s))
LTTNG_UST_TRACEPOINT_LOGLEVEL(variety, mixed, LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT)
LTTNG_UST_TRACEPOINT_ENUM(variety, mood,
	LTTNG_UST_TP_ENUM_VALUES(
		lttng_ust_field_enum_auto("BAD")
		ctf_enum_range("GOOD", 2, 200)
	)
)
TRACEPOINT_ENUM(variety, side,
	TP_ENUM_VALUES(
		ctf_enum_value("LEFT", -1)
		ctf_enum_auto("MIDDLE")
		ctf_enum_auto("RIGHT")
	)
)

TRACEPOINT_EVENT_CLASS(variety, late,
	TP_ARGS(int, n, const char *, s),
	TP_FIELDS(
		ctf_enum(variety, mood, unsigned char, mood, n)
		lttng_ust_field_string(s, s ? s : "none")
		ctf_enum(variety, side, int8_t, side, n - 2)
	)
)
LTTNG_UST_TRACEPOINT_EVENT(variety, packet,
	LTTNG_UST_TP_ARGS(const struct variety_packet *, p),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, version, p->version)
		lttng_ust_field_integer(int, offset, p->offset)
		lttng_ust_field_integer_hex(uint64_t, flow, p->flow)
		ctf_array_hex(uint8_t, mac, p->mac, 6)
		ctf_array_network(uint16_t, ports, p->ports, 2)
		ctf_array_text(char, name, p->name, sizeof(((struct variety_packet *)0)->name))
		ctf_array(int32_t, row, p->matrix[1], 3)
		ctf_sequence(int32_t, all, &p->matrix[0][0], uint8_t, 6)
		ctf_sequence_hex(uint8_t, data, p->data, size_t, p->len)
		ctf_sequence_text(char, text, (const char *)p->data, unsigned short, p->len / 2)
		ctf_integer(int, sum, variety_sum(p))
		ctf_integer(uintptr_t, next, p->next != NULL)
		ctf_integer(int, conditional, p->len > 4 ? 1 : -1)
		ctf_integer_network(uint32_t, address, 0x01020304)
		ctf_float(float, ratio, p->len / 8.0)
	)
)

TRACEPOINT_EVENT(variety, no_arguments, TP_ARGS(void), TP_FIELDS(ctf_integer(int, n, 7) ctf_string(s, "text")))
TRACEPOINT_EVENT(variety, nothing, TP_ARGS(), TP_FIELDS())
TRACEPOINT_EVENT(variety, nabcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_abcdefghi_, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
