/* SPDX-License-Identifier: MIT */
/*
 * tracelog(TRACE_INFO, "like printf %d", n): an event lttng_ust_tracelog:TRACE_INFO with fields
 * line, file, func, msg.
 */
#ifndef KYMO_LTTNG_TRACELOG_H
#define KYMO_LTTNG_TRACELOG_H

#pragma GCC system_header

#include <lttng/kymo-format.h>

/* clang-format off */

/* The level's name is that of the event, so it is not expanded. */
#define lttng_ust_tracelog(level, ...) KYMO__LTTNG_TRACELOG(kymo__lttng_tracelog, #level, level, __VA_ARGS__)
#define lttng_ust_vtracelog(level, format, ap) KYMO__LTTNG_TRACELOG(kymo__lttng_vtracelog, #level, level, format, ap)
#define KYMO__LTTNG_TRACELOG(record, name, level, ...) \
	do { \
		KYMO__LTTNG_MESSAGE_EVENT("lttng_ust_tracelog", name, level, \
			KYMO__DESC(kymo_i32(line, 0)) KYMO__DESC(kymo_string(file, 0)) KYMO__DESC(kymo_string(func, 0))) \
		if (kymo__lttng_is_enabled(&kymo__state)) \
			record(&kymo__event, __func__, __VA_ARGS__); \
	} while (0)

#if LTTNG_UST_COMPAT_API(0)
#define tracelog lttng_ust_tracelog
#endif

/* clang-format on */

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 3, 0))) void
kymo__lttng_vtracelog(
	const struct kymo_event *event, const char *func, const char *format, va_list ap)
{
	char small[512], *msg = kymo__format(small, sizeof(small), format, ap);

	KYMO__RECORD(event, tracelog, kymo_i32(line, (int32_t)event->line),
		kymo_string(file, event->file), kymo_string(func, func),
		kymo_text_seq(msg, msg, strlen(msg)))
	kymo__format_end(small, msg);
}

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 3, 4))) void
kymo__lttng_tracelog(const struct kymo_event *event, const char *func, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	kymo__lttng_vtracelog(event, func, format, ap);
	va_end(ap);
}

#endif
