/* SPDX-License-Identifier: MIT */
/* A provider of which a program and its library have different versions. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER versions

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./versions-tp.h"

#if !defined(VERSIONS_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define VERSIONS_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
#ifdef OLDER
TRACEPOINT_EVENT(versions, grown, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
TRACEPOINT_EVENT(versions, same, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
#else
TRACEPOINT_EVENT(versions, grown, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n) ctf_integer_hex(long, twice, 2L * n)))
TRACEPOINT_EVENT(versions, same, TP_ARGS(int, n), TP_FIELDS(ctf_integer(int, n, n)))
#endif
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
