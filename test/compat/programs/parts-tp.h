/* SPDX-License-Identifier: MIT */
/* A provider whose parts are in several objects. As generators write it: the provider's name is a macro, and so are arguments. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER parts

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./parts-tp.h"

#if !defined(PARTS_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define PARTS_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
#ifndef _TP_EXPROTO1
#define _TP_EXPROTO1(a) void
#endif
#ifndef _TP_EXDATA_PROTO1
#define _TP_EXDATA_PROTO1(a) void *__tp_data
#endif
#ifndef _TP_EXDATA_VAR1
#define _TP_EXDATA_VAR1(a) __tp_data
#endif
#ifndef _TP_EXVAR1
#define _TP_EXVAR1(a)
#endif

TRACEPOINT_EVENT(TRACEPOINT_PROVIDER, started, TP_ARGS(void), TP_FIELDS())

TRACEPOINT_EVENT(TRACEPOINT_PROVIDER, value,
	TP_ARGS(int, n, const char *, s),
	TP_FIELDS(
		ctf_integer(int, n, n)
		ctf_string(s, s)
	)
)
TRACEPOINT_LOGLEVEL(parts, value, TRACE_NOTICE)

TRACEPOINT_EVENT_CLASS(parts, number, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
#define PARTS_NUMBER(name) TRACEPOINT_EVENT_INSTANCE(parts, number, name, TP_ARGS(int, n))
PARTS_NUMBER(first_number)
PARTS_NUMBER(second_number)
#undef PARTS_NUMBER
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
