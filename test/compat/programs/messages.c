/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <string.h>

#include <lttng/tracef.h>
#include <lttng/tracelog.h>

static void forward(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	lttng_ust_vtracef(format, ap);
	va_end(ap);
	va_start(ap, format);
	lttng_ust_vtracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT, format, ap);
	va_end(ap);
}

int main(void)
{
	char large[2000];

	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	tracef("nothing but text");
	tracef("%d %s", 42, "forty-two");
	lttng_ust_tracef("%s", "");
	tracef("%s", large);
	lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO, "information %d", 1);
	lttng_ust_tracelog(LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG, "no values");
	forward("%s", "forwarded");
	return 0;
}
