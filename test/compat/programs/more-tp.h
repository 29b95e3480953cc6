/* SPDX-License-Identifier: MIT */
/* A second provider in the same sources. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER parts_more

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./more-tp.h"

#if !defined(MORE_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define MORE_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(parts_more, value,
	LTTNG_UST_TP_ARGS(double, d),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_float(double, d, d))
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
