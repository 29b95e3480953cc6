/* SPDX-License-Identifier: MIT */
/* The measured events for LTTng-UST; read several times by its headers, as its manual says. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng-events.h"

#if !defined(BENCH_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_EVENTS_H

#include <stdint.h>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench, one_int, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, a, i)))

LTTNG_UST_TRACEPOINT_EVENT(bench, ints_string, LTTNG_UST_TP_ARGS(int32_t, i, const char *, text),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, a, i)
		lttng_ust_field_integer(int32_t, b, i)
		lttng_ust_field_string(s, text)))

LTTNG_UST_TRACEPOINT_EVENT(bench, eight_ints, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int32_t, a, i)
		lttng_ust_field_integer(int32_t, b, i)
		lttng_ust_field_integer(int32_t, c, i)
		lttng_ust_field_integer(int32_t, d, i)
		lttng_ust_field_integer(int32_t, e, i)
		lttng_ust_field_integer(int32_t, f, i)
		lttng_ust_field_integer(int32_t, g, i)
		lttng_ust_field_integer(int32_t, h, i)))

LTTNG_UST_TRACEPOINT_EVENT(bench, contexts, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, a, i)))

LTTNG_UST_TRACEPOINT_EVENT(bench, passed, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, a, i)))

LTTNG_UST_TRACEPOINT_EVENT(bench, rejected, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, a, i)))

LTTNG_UST_TRACEPOINT_EVENT(bench, never_enabled, LTTNG_UST_TP_ARGS(int32_t, i),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, a, i)))

#endif

#include <lttng/tracepoint-event.h>
