/* SPDX-License-Identifier: MIT */
/*
 * Instrumentation for C (C11) and C++ (C++11 and later). One statement records an event:
 *
 *	kymo_event(shop, order_placed,
 *		   kymo_u64(order_id, id), kymo_string(customer, name), kymo_f64(total, total));
 *
 * While no session records the event, this costs a load and a branch that is not taken; the values
 * are not even computed. No library is linked: an object that has tracepoints searches for the
 * tracer library when it is loaded, and runs unchanged if there is none.
 *
 * Threads, signals: everything here may be used in any thread and in signal handlers, but not
 * between vfork() and exec. Recording never blocks, makes no system call, and preserves errno.
 *
 * Names: provider, event and field names are identifiers, not quoted. (If a name is also a macro,
 * the preprocessor replaces it, as anywhere in C.)
 *
 * Fields (at most 32 in an event):
 *
 *	kymo_i8 .. kymo_i64, kymo_u8 .. kymo_u64 (name, value)	integers
 *	kymo_x8 .. kymo_x64 (name, value)	unsigned, shown in base 16
 *	kymo_net16 .. kymo_net64 (name, value)	unsigned, in network byte order (as sin_port)
 *	kymo_netx16 .. kymo_netx64 (name, value)	the same, shown in base 16
 *	kymo_f32, kymo_f64 (name, value)	float, double
 *	kymo_bool (name, value)			0 or 1
 *	kymo_ptr (name, pointer)		an address
 *	kymo_string (name, s)			NUL-terminated UTF-8; NULL is recorded as "(null)".
 *						In C++ also std::string, std::string_view and
 *						similar types, up to a NUL
 *	kymo_enum (name, type, value)		int with labels, see KYMO_ENUM; kymo_enum_i8 ..
 *						kymo_enum_u64 for other sizes
 *	kymo_array_T (name, pointer, COUNT)	COUNT elements (a constant); T is i8 .. x64,
 *						net16 .., f32, f64, bool, ptr, string
 *	kymo_seq_T (name, pointer, n)		n elements, n not constant
 *	kymo_array_enum, kymo_seq_enum (name, type, pointer, n)	of int
 *	kymo_text (name, pointer, COUNT)	text in a fixed array, with or without a NUL
 *	kymo_text_seq (name, pointer, n)	n bytes of text
 *	kymo_blob (name, pointer, n)		n bytes of any content
 *	kymo_blob (name, "image/png", pointer, n)	the same with a media type, which is in
 *						field name_media_type, one byte
 *
 * <kymo/nested.h> has structures, optional fields, and variants.
 *
 * A number of more than 32 bits that is not a constant does not compile in a narrower field: use a
 * wider field, or a cast. Values may be in temporaries, which live until the event is recorded.
 *
 * A sequence of strings may have at most KYMO_SEQ_STRINGS_MAX; an event with more is counted as
 * discarded.
 */
#ifndef KYMO_TRACEPOINT_H
#define KYMO_TRACEPOINT_H

#pragma GCC system_header

#include <kymo/types.h>

/* clang-format off */

/*
 * kymo_event(provider, name, fields...): records an event of log level KYMO_DEBUG_LINE.
 * kymo_event_level(provider, name, level, fields...): the same with a level, a constant (KYMO_EMERG
 * .. KYMO_DEBUG). kymo_event_enabled(provider, name): true while any session records the event of
 * that name. Use it to guard work that is needed only for the event's fields.
 */
#define kymo_event(provider, ...) \
	KYMO__STATEMENT(KYMO__STRING(provider), KYMO__FIRST(__VA_ARGS__, 0), KYMO_DEBUG_LINE, __VA_ARGS__)
#define kymo_event_level(provider, name, ...) \
	KYMO__STATEMENT(KYMO__STRING(provider), KYMO__STRING(name), KYMO__FIRST_TOKEN(__VA_ARGS__, 0), __VA_ARGS__)
#define kymo_event_enabled(provider, name) \
	__extension__({ \
		static struct kymo_event_state kymo__state; \
		static const struct kymo_event kymo__event = { \
			(uint32_t)sizeof(struct kymo_event), KYMO_EVENT_QUERY, 0, KYMO__STRING(provider), \
			KYMO__STRING(name), NULL, &kymo__state, __FILE__, __LINE__, 0}; \
		KYMO__LIST(kymo__event) \
		(int)KYMO__IS_ENABLED(kymo__state); \
	})

/*
 * printf-style events for quick debugging: kymo_tracef:event with field msg, and
 * kymo_tracelog:LEVEL (as WARNING) with fields line, file, func and msg.
 */
#define kymo_tracef(...) \
	do { \
		static const struct kymo_field kymo__fields[] = { \
			KYMO__DESC(kymo_string(msg, 0)) KYMO__NO_FIELD}; \
		KYMO__DEFINE_EVENT("kymo_tracef", "event", KYMO_DEBUG_LINE, kymo__fields) \
		if (KYMO__IS_ENABLED(kymo__state)) \
			kymo__tracef(&kymo__event, __VA_ARGS__); \
	} while (0)
#define kymo_tracelog(level, ...) \
	do { \
		static const struct kymo_field kymo__fields[] = { \
			KYMO__DESC(kymo_i32(line, 0)) KYMO__DESC(kymo_string(file, 0)) \
			KYMO__DESC(kymo_string(func, 0)) KYMO__DESC(kymo_string(msg, 0)) KYMO__NO_FIELD}; \
		KYMO__DEFINE_EVENT("kymo_tracelog", &KYMO__STRING(level)[sizeof("KYMO_") - 1], level, kymo__fields) \
		if (KYMO__IS_ENABLED(kymo__state)) \
			kymo__tracelog(&kymo__event, __func__, __VA_ARGS__); \
	} while (0)

/*
 * Header form, for events that several sources share: at file scope, in a header,
 *
 *	KYMO_EVENT_DEFINE(shop, order_paid, KYMO_INFO, KYMO_ARGS(uint64_t id, double total),
 *		kymo_u64(order_id, id), kymo_f64(total, total))
 *
 * and in code: kymo_trace(shop, order_paid, id, total). Several events with the same fields share a
 * class:
 *
 *	KYMO_EVENT_CLASS(shop, order, KYMO_ARGS(uint64_t id), kymo_u64(order_id, id))
 *	KYMO_EVENT_INSTANCE(shop, order, order_packed, KYMO_INFO)
 *	KYMO_EVENT_INSTANCE(shop, order, order_sent, KYMO_NOTICE)
 *
 * KYMO_NO_ARGS stands for an empty list. kymo_trace_enabled(provider, name) as kymo_event_enabled.
 */
#define KYMO_ARGS(...) (, __VA_ARGS__)
#define KYMO_NO_ARGS ()
#define KYMO_EVENT_CLASS(provider, cls, ...) KYMO__CLASS(provider, cls, __VA_ARGS__)
#define KYMO_EVENT_INSTANCE(provider, cls, name, level) KYMO__INSTANCE(provider, cls, name, level)
#define KYMO_EVENT_DEFINE(provider, name, level, ...) \
	KYMO__CLASS(provider, name, __VA_ARGS__) \
	KYMO_EVENT_INSTANCE(provider, name, name, level)
#define kymo_trace(provider, ...) \
	KYMO__APPLY_CAT(KYMO__TRACE, KYMO__MANY(__VA_ARGS__))(provider, __VA_ARGS__)
#define kymo_trace_enabled(provider, name) \
	((int)KYMO__IS_ENABLED(KYMO__STATE(provider, name)))

/*
 * An enumeration, at file scope; labels are string literals, values constants:
 *
 *	KYMO_ENUM(payment, KYMO_VALUE("CARD", 0), KYMO_VALUE("CASH", 1),
 *		  KYMO_RANGE("VOUCHER", 2, 9))
 *
 * In C++ it may be in a namespace. Fields name it by one word, without the namespace: outside, they
 * need a using-directive.
 */
#define KYMO_ENUM(type, ...) KYMO__ENUM(type, __VA_ARGS__)
#define KYMO_VALUE(label, value) {label, (uint64_t)(value), (uint64_t)(value)}
#define KYMO_RANGE(label, from, to) {label, (uint64_t)(from), (uint64_t)(to)}

#define KYMO_SEQ_STRINGS_MAX 64

/* clang-format on */

/* The implementation: names with two underscores, which programs must not use. */
#include <kymo/detail/fields.h>
#include <kymo/detail/record.h>
#include <kymo/detail/object.h>

#endif
