/* SPDX-License-Identifier: MIT */
/* tracef("like printf %d", n): an event lttng_ust_tracef:event with field msg. */
#ifndef KYMO_LTTNG_TRACEF_H
#define KYMO_LTTNG_TRACEF_H

#pragma GCC system_header

#include <lttng/kymo-format.h>

/* clang-format off */

#define lttng_ust_tracef(...) KYMO__LTTNG_TRACEF(kymo__lttng_tracef, __VA_ARGS__)
#define lttng_ust_vtracef(format, ap) KYMO__LTTNG_TRACEF(kymo__lttng_vtracef, format, ap)
#define KYMO__LTTNG_TRACEF(record, ...) \
	do { \
		KYMO__LTTNG_MESSAGE_EVENT("lttng_ust_tracef", "event", KYMO_DEBUG, ) \
		if (kymo__lttng_is_enabled(&kymo__state)) \
			record(&kymo__event, __VA_ARGS__); \
	} while (0)

#if LTTNG_UST_COMPAT_API(0)
#define tracef lttng_ust_tracef
#endif

/* clang-format on */

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 2, 0))) void
kymo__lttng_vtracef(const struct kymo_event *event, const char *format, va_list ap)
{
	char small[512], *msg = kymo__format(small, sizeof(small), format, ap);

	KYMO__RECORD(event, tracef, kymo_text_seq(msg, msg, strlen(msg)))
	kymo__format_end(small, msg);
}

static inline KYMO__QUIET __attribute__((__cold__, __format__(__printf__, 2, 3))) void
kymo__lttng_tracef(const struct kymo_event *event, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	kymo__lttng_vtracef(event, format, ap);
	va_end(ap);
}

#endif
