/* SPDX-License-Identifier: MIT */
/*
 * tracef and tracelog of LTTng-UST: a macro in the program looks at a tracepoint that is in the
 * library, and calls a function which is there too, one for each log level.
 */
#include "lttng/lttng.h"

struct message {
	struct kymo_watched_event watched;
	struct kymo_event_state state;
	struct abi_tracepoint *tracepoint;
};

static void message_switched(const struct kymo_event *event, uint32_t enabled)
{
	const struct message *m = (const struct message *)event;

	__atomic_store_n(&m->tracepoint->state, enabled != 0, __ATOMIC_RELEASE);
}

/*
 * The tracepoints are the programs' to see; non-PIC executables have copies of them, which all
 * addresses here lead to.
 */
#define MESSAGE(symbol, provider, event, level, table)                                             \
	extern struct abi_tracepoint symbol;                                                       \
	EXPORT struct abi_tracepoint symbol = {                                                    \
		sizeof(struct abi_tracepoint), provider, event, 0, NULL, NULL, ""};                \
	static struct message message_##symbol = {                                                 \
		{{{(uint32_t)sizeof(struct kymo_watched_event), KYMO_EVENT_PLAIN, level, provider, \
			  event, table, &message_##symbol.state, "", 0, 0},                        \
			 NULL, NULL, NULL},                                                        \
			message_switched},                                                         \
		{0, 0, NULL, NULL, NULL, NULL, NULL}, &symbol};

static const struct kymo_field tracef_fields[] = {
	KYMO__DESC(kymo_text_seq(msg, 0, 0)) KYMO__NO_FIELD};
static const struct kymo_field tracelog_fields[] = {KYMO__DESC(kymo_i32(line, 0))
		KYMO__DESC(kymo_string(file, 0)) KYMO__DESC(kymo_string(func, 0))
			KYMO__DESC(kymo_text_seq(msg, 0, 0)) KYMO__NO_FIELD};

MESSAGE(lttng_ust_tracepoint_lttng_ust_tracef___event, "lttng_ust_tracef", "event", KYMO_DEBUG,
	tracef_fields)

static void record_tracef(const struct kymo_event *event, const char *format, va_list ap)
{
	char small[512], *msg = kymo__format(small, sizeof(small), format, ap);

	KYMO__RECORD(event, tracef, kymo_text_seq(msg, msg, strlen(msg)))
	kymo__format_end(small, msg);
}

static void record_tracelog(const struct kymo_event *event, const char *file, int line,
	const char *func, const char *format, va_list ap)
{
	char small[512], *msg = kymo__format(small, sizeof(small), format, ap);

	KYMO__RECORD(event, tracelog, kymo_i32(line, line), kymo_string(file, file),
		kymo_string(func, func), kymo_text_seq(msg, msg, strlen(msg)))
	kymo__format_end(small, msg);
}

static bool is_on(const struct message *m)
{
	return KYMO__IS_ENABLED(m->state);
}

#define EVENT_OF(symbol) (&message_##symbol.watched.probe.event)

void lttng_ust__vtracef(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
EXPORT void lttng_ust__vtracef(const char *format, va_list ap)
{
	if (is_on(&message_lttng_ust_tracepoint_lttng_ust_tracef___event))
		record_tracef(EVENT_OF(lttng_ust_tracepoint_lttng_ust_tracef___event), format, ap);
}

void lttng_ust__tracef(const char *format, ...) __attribute__((format(printf, 1, 2)));
EXPORT void lttng_ust__tracef(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	lttng_ust__vtracef(format, ap);
	va_end(ap);
}

#define TRACELOG(LEVEL)                                                                                                   \
	MESSAGE(lttng_ust_tracepoint_lttng_ust_tracelog___LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL,                          \
		"lttng_ust_tracelog", "LTTNG_UST_TRACEPOINT_LOGLEVEL_" #LEVEL, KYMO_##LEVEL,                              \
		tracelog_fields)                                                                                          \
	void lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL(                                                  \
		const char *file, int line, const char *func, const char *format, va_list ap);                            \
	EXPORT void lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL(                                           \
		const char *file, int line, const char *func, const char *format, va_list ap)                             \
	{                                                                                                                 \
		if (is_on(&message_lttng_ust_tracepoint_lttng_ust_tracelog___LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL))      \
			record_tracelog(                                                                                  \
				EVENT_OF(                                                                                 \
					lttng_ust_tracepoint_lttng_ust_tracelog___LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL), \
				file, line, func, format, ap);                                                            \
	}                                                                                                                 \
	void lttng_ust__tracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL(                                                   \
		const char *file, int line, const char *func, const char *format, ...);                                   \
	EXPORT void lttng_ust__tracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL(                                            \
		const char *file, int line, const char *func, const char *format, ...)                                    \
	{                                                                                                                 \
		va_list ap;                                                                                               \
                                                                                                                          \
		va_start(ap, format);                                                                                     \
		lttng_ust__vtracelog_LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL(                                               \
			file, line, func, format, ap);                                                                    \
		va_end(ap);                                                                                               \
	}

#define LEVELS(X)                                                                                  \
	X(EMERG)                                                                                   \
	X(ALERT)                                                                                   \
	X(CRIT)                                                                                    \
	X(ERR)                                                                                     \
	X(WARNING)                                                                                 \
	X(NOTICE)                                                                                  \
	X(INFO)                                                                                    \
	X(DEBUG_SYSTEM)                                                                            \
	X(DEBUG_PROGRAM)                                                                           \
	X(DEBUG_PROCESS)                                                                           \
	X(DEBUG_MODULE)                                                                            \
	X(DEBUG_UNIT)                                                                              \
	X(DEBUG_FUNCTION)                                                                          \
	X(DEBUG_LINE)                                                                              \
	X(DEBUG)

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
LEVELS(TRACELOG)

#define LISTED(LEVEL)                                                                              \
	EVENT_OF(lttng_ust_tracepoint_lttng_ust_tracelog___LTTNG_UST_TRACEPOINT_LOGLEVEL_##LEVEL),

static const struct kymo_event *const events[] = {
	EVENT_OF(lttng_ust_tracepoint_lttng_ust_tracef___event), LEVELS(LISTED)};
static struct kymo_object object = {sizeof(object), KYMO_ABI_VERSION, events,
	events + sizeof(events) / sizeof(events[0]), NULL};

__attribute__((constructor(102))) static void register_messages(void)
{
	kymo_object_register(&object);
}
