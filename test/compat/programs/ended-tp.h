/* SPDX-License-Identifier: MIT */
/* Texts in memory that ends with their NULs. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER ended

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./ended-tp.h"

#if !defined(ENDED_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define ENDED_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(ended, array, TP_ARGS(const char *, s), TP_FIELDS(
	ctf_array_text(char, name, s, 256)
	ctf_integer(int, behind, 7)))
TRACEPOINT_EVENT(ended, sequence, TP_ARGS(const char *, s, size_t, n), TP_FIELDS(
	ctf_sequence_text(char, name, s, size_t, n)
	ctf_integer(int, behind, 7)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
