/* SPDX-License-Identifier: MIT */
/* The measured events by LTTng-UST: see system-kymo.h. */
#ifndef BENCH_SYSTEM_LTTNG_H
#define BENCH_SYSTEM_LTTNG_H

#include <lttng/tracef.h>

#include "lttng-events.h"

static inline void record_int(int32_t i)
{
	lttng_ust_tracepoint(bench, one_int, i);
}

static inline void record_string(int32_t i, const char *s)
{
	lttng_ust_tracepoint(bench, ints_string, i, s);
}

static inline void record_eight(int32_t i)
{
	lttng_ust_tracepoint(bench, eight_ints, i);
}

static inline void record_contexts(int32_t i)
{
	lttng_ust_tracepoint(bench, contexts, i);
}

static inline void record_passed(int32_t i)
{
	lttng_ust_tracepoint(bench, passed, i);
}

static inline void record_rejected(int32_t i)
{
	lttng_ust_tracepoint(bench, rejected, i);
}

static inline void record_disabled(int32_t i)
{
	lttng_ust_tracepoint(bench, never_enabled, i);
}

static inline void record_printf(int32_t i)
{
	lttng_ust_tracef("%d", i);
}

#endif
