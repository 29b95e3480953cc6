/* SPDX-License-Identifier: MIT */
/* An event with an excluded field: filters can use it, and no record has it. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER excluded
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./excluded-tp.h"

#if !defined(EXCLUDED_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define EXCLUDED_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(excluded, state,
	LTTNG_UST_TP_ARGS(int, n, const char *, s),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(int, n, n)
		lttng_ust_field_string(s, s)
		lttng_ust_field_string_nowrite(secret, s)
		lttng_ust_field_integer_nowrite(int, hidden, n * 2)
	)
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
