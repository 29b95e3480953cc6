/* SPDX-License-Identifier: MIT */
/*
 * The measured events by Kymo, for emit.c and tiny.c. system-lttng.h and system-limit.h have the
 * same functions.
 */
#ifndef BENCH_SYSTEM_KYMO_H
#define BENCH_SYSTEM_KYMO_H

#include <kymo/tracepoint.h>

static inline void record_int(int32_t i)
{
	kymo_event(bench, one_int, kymo_i32(a, i));
}

static inline void record_string(int32_t i, const char *s)
{
	kymo_event(bench, ints_string, kymo_i32(a, i), kymo_i32(b, i), kymo_string(s, s));
}

static inline void record_eight(int32_t i)
{
	kymo_event(bench, eight_ints, kymo_i32(a, i), kymo_i32(b, i), kymo_i32(c, i),
		kymo_i32(d, i), kymo_i32(e, i), kymo_i32(f, i), kymo_i32(g, i), kymo_i32(h, i));
}

static inline void record_contexts(int32_t i)
{
	kymo_event(bench, contexts, kymo_i32(a, i));
}

static inline void record_passed(int32_t i)
{
	kymo_event(bench, passed, kymo_i32(a, i));
}

static inline void record_rejected(int32_t i)
{
	kymo_event(bench, rejected, kymo_i32(a, i));
}

static inline void record_disabled(int32_t i)
{
	kymo_event(bench, never_enabled, kymo_i32(a, i));
}

static inline void record_printf(int32_t i)
{
	kymo_tracef("%d", i);
}

#endif
