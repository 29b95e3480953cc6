/* SPDX-License-Identifier: MIT */
/*
 * Related events: work that takes time, numbers that change, causes and their effects.
 *
 *	void checkout(struct order *o)
 *	{
 *		kymo_span(shop, checkout, kymo_u64(order_id, o->id));	to the end of the block
 *
 *		kymo_span_begin(shop, payment);
 *		pay(o);
 *		kymo_span_end(shop, payment, kymo_bool(paid, o->paid));
 *		kymo_counter(shop, open_orders, n_orders);
 *	}
 *
 * All of these make events as kymo_event does, each at the same cost, with a name and a first field
 * that readers know (docs/spans.md of the sources). `kymo stat` shows how long spans took. Rules
 * see the names that are listed here.
 *
 *	kymo_span_begin, _end (provider, name, fields...)
 *		events name_begin, name_end; field span_tid. The span belongs to one thread, which
 *		may have others inside, also of the same name.
 *	kymo_span (provider, name, fields...)
 *		the same, as a declaration: the span ends when its block is left in any way, in C++
 *		also by exceptions
 *	kymo_async_begin, _end (provider, name, id, fields...)
 *		the same with field async_id: any two threads begin and end it, also of two
 *		processes
 *	kymo_flow_begin, _step, _end (provider, name, id, fields...)
 *		events name_begin, name_step, name_end; field flow_id: all effects of one cause, in
 *		any thread and process
 *	kymo_counter, kymo_counter_f64 (provider, name, value)
 *		event name; field counter: the value from now on
 *
 * An id is any number of 64 bits that differs between spans, or flows, of the same name at the same
 * time. Fields are those of kymo_event, at most 31; all events of one name have the same fields.
 * Three more fields, for any event, take pointers to identifiers of W3C Trace Context
 * (OpenTelemetry) in their binary form:
 *
 *	kymo_w3c_trace_id (pointer)	16 bytes; field trace_id
 *	kymo_w3c_span_id (pointer)	8 bytes; field span_id
 *	kymo_w3c_parent_id (pointer)	8 bytes; field parent_span_id
 *
 * C11 and C++11.
 */
#ifndef KYMO_SPAN_H
#define KYMO_SPAN_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

/* clang-format off */

#define kymo_span_begin(provider, ...) \
	KYMO__STATEMENT(KYMO__STRING(provider), KYMO__FIRST(__VA_ARGS__, 0) "_begin", KYMO_DEBUG_LINE, KYMO__OF_THREAD(__VA_ARGS__))
#define kymo_span_end(provider, ...) \
	KYMO__STATEMENT(KYMO__STRING(provider), KYMO__FIRST(__VA_ARGS__, 0) "_end", KYMO_DEBUG_LINE, KYMO__OF_THREAD(__VA_ARGS__))
#define kymo_span(provider, ...) \
	const void *KYMO__APPLY_CAT(kymo__span_, __LINE__) \
		__attribute__((__cleanup__(kymo__span_leave), __unused__)) = __extension__({ \
			kymo_span_begin(provider, __VA_ARGS__); \
			static const struct kymo_field kymo__fields[] = { \
				KYMO__DESC(kymo_u32(span_tid, 0)) KYMO__NO_FIELD}; \
			KYMO__DEFINE_EVENT(KYMO__STRING(provider), KYMO__FIRST(__VA_ARGS__, 0) "_end", KYMO_DEBUG_LINE, kymo__fields) \
			&kymo__event; \
		})

#define kymo_async_begin(provider, name, ...) KYMO__NUMBERED(provider, name, "_begin", async_id, __VA_ARGS__)
#define kymo_async_end(provider, name, ...) KYMO__NUMBERED(provider, name, "_end", async_id, __VA_ARGS__)
#define kymo_flow_begin(provider, name, ...) KYMO__NUMBERED(provider, name, "_begin", flow_id, __VA_ARGS__)
#define kymo_flow_step(provider, name, ...) KYMO__NUMBERED(provider, name, "_step", flow_id, __VA_ARGS__)
#define kymo_flow_end(provider, name, ...) KYMO__NUMBERED(provider, name, "_end", flow_id, __VA_ARGS__)

#define kymo_counter(provider, name, value) kymo_event(provider, name, kymo_i64(counter, value))
#define kymo_counter_f64(provider, name, value) kymo_event(provider, name, kymo_f64(counter, value))

/* From here on: the implementation; see <kymo/tracepoint.h>. */
#define KYMO__NUMBERED(provider, name, ending, field, ...) \
	KYMO__STATEMENT(KYMO__STRING(provider), KYMO__STRING(name) ending, KYMO_DEBUG_LINE, name, \
		KYMO__APPLY_CAT(KYMO__ID, KYMO__MANY(__VA_ARGS__))(field, __VA_ARGS__))
#define KYMO__ID_ONE(field, id) kymo_u64(field, id)
#define KYMO__ID_MORE(field, id, ...) kymo_u64(field, id), __VA_ARGS__

#define KYMO__OF_THREAD(...) KYMO__APPLY_CAT(KYMO__OF_THREAD, KYMO__MANY(__VA_ARGS__))(__VA_ARGS__)
#define KYMO__OF_THREAD_ONE(name) name, kymo_u32(span_tid, kymo__thread_id())
#define KYMO__OF_THREAD_MORE(name, ...) name, kymo_u32(span_tid, kymo__thread_id()), __VA_ARGS__

#define KYMO__F_kymo_w3c_trace_id(p) _ARRAY, (_netx64, trace_id, p, 2)
#define KYMO__F_kymo_w3c_span_id(p) _SCALAR, (_netx64, span_id, kymo__load_u64(p))
#define KYMO__F_kymo_w3c_parent_id(p) _SCALAR, (_netx64, parent_span_id, kymo__load_u64(p))

/* clang-format on */

static inline KYMO__QUIET __attribute__((__unused__)) uint64_t kymo__load_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

KYMO__C_BEGIN
static __typeof__(kymo_thread_id) kymo__weak_thread_id
	__attribute__((__weakref__("kymo_thread_id")));
extern uint32_t (*kymo__own_thread_id)(void);
void kymo__span_loaded(void) __attribute__((__constructor__(102)));
void kymo__span_again(void);

/* A function of the tracer; NULL if there is no tracer, or one that does not support spans. */
__attribute__((__weak__, __visibility__("hidden"))) uint32_t (*kymo__own_thread_id)(void) = NULL;

/*
 * Runs before any span is recorded, even by a signal handler, and after the object's events were
 * registered.
 */
KYMO__QUIET __attribute__((__weak__, __visibility__("hidden"))) void kymo__span_loaded(void)
{
	void *address = kymo__find_own("kymo_thread_id");

	kymo__own_thread_id = kymo__weak_thread_id;
	if (address)
		memcpy(&kymo__own_thread_id, &address, sizeof(address));
}

KYMO__QUIET __attribute__((__weak__, __visibility__("hidden"))) void kymo__span_again(void)
{
	kymo__object_again();
	kymo__span_loaded();
}
KYMO__LATE(kymo__span_again)
KYMO__C_END

static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__unused__)) uint32_t kymo__thread_id(
	void)
{
	return kymo__own_thread_id ? kymo__own_thread_id() : 0;
}

/*
 * end: of the event. In a coroutine, the variable is a member of a type that is not hidden, so its
 * own type may not be hidden, as kymo_event is.
 */
static inline KYMO__QUIET __attribute__((__always_inline__, __unused__)) void kymo__span_leave(
	const void *const *end)
{
	const struct kymo_event *event = (const struct kymo_event *)*end;

	if (KYMO__IS_ENABLED(*event->state))
		KYMO__RECORD(event, span, kymo_u32(span_tid, kymo__thread_id()))
}

#endif
