/* SPDX-License-Identifier: MIT */
/*
 * Instrumentation for C (C11) and C++ (C++11 and later). One statement records an event:
 *
 *	kymo_event(shop, order_placed,
 *		   kymo_u64(order_id, id), kymo_string(customer, name), kymo_f64(total, total));
 *
 * While no session wants the event this costs a load and a branch that is not taken; the values are
 * not even computed. There is nothing to link with: an object that has tracepoints looks for the tracer
 * library when it is loaded, and runs unchanged where there is none.
 *
 * Threads, signals: everything here may be used in any thread and in signal handlers, but not between
 * vfork() and exec. Recording never blocks, never calls the system, and keeps errno.
 *
 * Names: provider, event and field names are identifiers, not quoted. (A name that is also a macro is
 * replaced by what that stands for, as anywhere in C.)
 *
 * Fields (at most 32 in an event):
 *
 *	kymo_i8 .. kymo_i64, kymo_u8 .. kymo_u64 (name, value)	integers
 *	kymo_x8 .. kymo_x64 (name, value)	unsigned, shown in base 16
 *	kymo_net16 .. kymo_net64 (name, value)	unsigned, already in network byte order in memory (as sin_port)
 *	kymo_netx16 .. kymo_netx64 (name, value)	the same, shown in base 16
 *	kymo_f32, kymo_f64 (name, value)	float, double
 *	kymo_bool (name, value)		0 or 1
 *	kymo_ptr (name, pointer)		an address
 *	kymo_string (name, s)			NUL-terminated UTF-8; NULL is recorded as "(null)"
 *	kymo_enum (name, type, value)		int with labels, see KYMO_ENUM; kymo_enum_i8 .. kymo_enum_u64 for other sizes
 *	kymo_array_T (name, pointer, COUNT)	COUNT elements (a constant); T is i8 .. x64, net16 .., f32, f64, bool, ptr, string
 *	kymo_seq_T (name, pointer, n)		n elements, n not constant
 *	kymo_array_enum, kymo_seq_enum (name, type, pointer, n)	of int
 *	kymo_text (name, pointer, COUNT)	text in a fixed array; it may or may not end in a NUL
 *	kymo_text_seq (name, pointer, n)	n bytes of text
 *	kymo_blob (name, pointer, n)		n bytes of anything
 *	kymo_blob (name, "image/png", pointer, n)	the same, and of what media type they are: field name_media_type, one byte
 *
 * <kymo/nested.h> has structures, fields that may be absent, and variants.
 *
 * A sequence of strings may have at most KYMO_SEQ_STRINGS_MAX; an event with more is counted as discarded.
 */
#ifndef KYMO_TRACEPOINT_H
#define KYMO_TRACEPOINT_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/types.h>

/* clang-format off */

/*
 * kymo_event(provider, name, fields...): records an event of log level KYMO_DEBUG_LINE.
 * kymo_event_level(provider, name, level, fields...): the same with a level, a constant (KYMO_EMERG .. KYMO_DEBUG).
 * kymo_event_enabled(provider, name): true while some session records the event of that name: to guard work
 * that is needed for its fields alone.
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
 * printf-style events for hasty debugging: kymo_tracef:event with field msg, and
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
 * and in code: kymo_trace(shop, order_paid, id, total). Several events with the same fields share a class:
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
	KYMO__APPLY_CAT(KYMO__TRACE_, KYMO__MANY(__VA_ARGS__))(provider, __VA_ARGS__)
#define kymo_trace_enabled(provider, name) \
	((int)KYMO__IS_ENABLED(KYMO__STATE(provider, name)))

/*
 * An enumeration, at file scope; labels are string literals, values constants:
 *
 *	KYMO_ENUM(payment, KYMO_VALUE("CARD", 0), KYMO_VALUE("CASH", 1), KYMO_RANGE("VOUCHER", 2, 9))
 */
#define KYMO_ENUM(type, ...) KYMO__ENUM(type, __VA_ARGS__)
#define KYMO_VALUE(label, value) {label, (uint64_t)(value), (uint64_t)(value)}
#define KYMO_RANGE(label, from, to) {label, (uint64_t)(from), (uint64_t)(to)}

#define KYMO_SEQ_STRINGS_MAX 64

/*
 * From here on: how it is done. Names with two underscores are not for programs.
 *
 * A field is written kymo_u64(name, value), where kymo_u64 is not a macro: KYMO__F_ is pasted in front,
 * which turns it into `KIND, (arguments)`, and an operation into the macro of that operation and kind:
 *
 *	DESC	its entry in the static table of fields
 *	ROOM	bytes it may need in the scratch buffer
 *	PIECES	entries it may need in the list of pieces
 *	PUT	code that appends its value to the record
 */
#ifdef __cplusplus
#define KYMO__C_BEGIN extern "C" {
#define KYMO__C_END }
#else
#define KYMO__C_BEGIN
#define KYMO__C_END
#endif

/* A name as a string; what is no identifier does not paste, and compilers show this text: */
#define KYMO__STRING(name) KYMO__NOTHING(names_are_not_quoted_##name) #name
#define KYMO__NOTHING(...)
#define KYMO__FIRST(first, ...) KYMO__STRING(first)
#define KYMO__FIRST_TOKEN(first, ...) first
#define KYMO__CAT(a, b) a##b
#define KYMO__APPLY_CAT(a, b) KYMO__CAT(a, b)
#define KYMO__IS_ENABLED(state) \
	__builtin_expect(__atomic_load_n(&(state).enabled, __ATOMIC_RELAXED) != 0, 0)

/* Number of arguments, 1 .. 33; and whether there is ONE or MORE. */
#define KYMO__COUNT(...) KYMO__COUNT_(__VA_ARGS__, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define KYMO__COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, n, ...) n
#define KYMO__MANY(...) KYMO__COUNT_(__VA_ARGS__, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, ONE, 0)

/* Applies op to every argument but the first (the event's name). */
#define KYMO__EACH(op, ...) KYMO__APPLY_CAT(KYMO__EACH_, KYMO__COUNT(__VA_ARGS__))(op, __VA_ARGS__)
#define KYMO__EACH_1(op, n)
#define KYMO__EACH_2(op, n, f1) op(f1)
#define KYMO__EACH_3(op, n, f1, f2) op(f1) op(f2)
#define KYMO__EACH_4(op, n, f1, f2, f3) op(f1) op(f2) op(f3)
#define KYMO__EACH_5(op, n, f1, f2, f3, f4) op(f1) op(f2) op(f3) op(f4)
#define KYMO__EACH_6(op, n, f1, f2, f3, f4, f5) op(f1) op(f2) op(f3) op(f4) op(f5)
#define KYMO__EACH_7(op, n, f1, f2, f3, f4, f5, f6) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6)
#define KYMO__EACH_8(op, n, f1, f2, f3, f4, f5, f6, f7) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7)
#define KYMO__EACH_9(op, n, f1, f2, f3, f4, f5, f6, f7, f8) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8)
#define KYMO__EACH_10(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9)
#define KYMO__EACH_11(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10)
#define KYMO__EACH_12(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11)
#define KYMO__EACH_13(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12)
#define KYMO__EACH_14(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13)
#define KYMO__EACH_15(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14)
#define KYMO__EACH_16(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15)
#define KYMO__EACH_17(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16)
#define KYMO__EACH_18(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17)
#define KYMO__EACH_19(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18)
#define KYMO__EACH_20(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19)
#define KYMO__EACH_21(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20)
#define KYMO__EACH_22(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21)
#define KYMO__EACH_23(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22)
#define KYMO__EACH_24(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23)
#define KYMO__EACH_25(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24)
#define KYMO__EACH_26(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25)
#define KYMO__EACH_27(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26)
#define KYMO__EACH_28(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27)
#define KYMO__EACH_29(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27) op(f28)
#define KYMO__EACH_30(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27) op(f28) op(f29)
#define KYMO__EACH_31(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27) op(f28) op(f29) op(f30)
#define KYMO__EACH_32(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27) op(f28) op(f29) op(f30) op(f31)
#define KYMO__EACH_33(op, n, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32) op(f1) op(f2) op(f3) op(f4) op(f5) op(f6) op(f7) op(f8) op(f9) op(f10) op(f11) op(f12) op(f13) op(f14) op(f15) op(f16) op(f17) op(f18) op(f19) op(f20) op(f21) op(f22) op(f23) op(f24) op(f25) op(f26) op(f27) op(f28) op(f29) op(f30) op(f31) op(f32)

/* What is no kind of field remains in the name that compilers do not know: KYMO__DESC_KYMO__F_kymo_integer. */
#define KYMO__OP(op, ...) KYMO__OP_(op, __VA_ARGS__, , )
#define KYMO__OP_(op, kind, args, ...) op##kind args
#define KYMO__DESC(field) KYMO__OP(KYMO__DESC_, KYMO__F_##field)
#define KYMO__ROOM(field) KYMO__OP(KYMO__ROOM_, KYMO__F_##field)
#define KYMO__PIECES(field) KYMO__OP(KYMO__PIECES_, KYMO__F_##field)
#define KYMO__PUT(field) KYMO__OP(KYMO__PUT_, KYMO__F_##field)
#define KYMO__NO_FIELD {KYMO_FIELD_END, 0, 0, 0, 0, NULL, NULL}

/* Types of scalars: kind, C type, flags. */
#define KYMO__KIND_i8 KYMO_FIELD_INT
#define KYMO__FLAGS_i8 0
typedef int8_t kymo__i8;
#define KYMO__KIND_i16 KYMO_FIELD_INT
#define KYMO__FLAGS_i16 0
typedef int16_t kymo__i16;
#define KYMO__KIND_i32 KYMO_FIELD_INT
#define KYMO__FLAGS_i32 0
typedef int32_t kymo__i32;
#define KYMO__KIND_i64 KYMO_FIELD_INT
#define KYMO__FLAGS_i64 0
typedef int64_t kymo__i64;
#define KYMO__KIND_u8 KYMO_FIELD_UINT
#define KYMO__FLAGS_u8 0
typedef uint8_t kymo__u8;
#define KYMO__KIND_u16 KYMO_FIELD_UINT
#define KYMO__FLAGS_u16 0
typedef uint16_t kymo__u16;
#define KYMO__KIND_u32 KYMO_FIELD_UINT
#define KYMO__FLAGS_u32 0
typedef uint32_t kymo__u32;
#define KYMO__KIND_u64 KYMO_FIELD_UINT
#define KYMO__FLAGS_u64 0
typedef uint64_t kymo__u64;
#define KYMO__KIND_x8 KYMO_FIELD_UINT
#define KYMO__FLAGS_x8 KYMO_FIELD_HEX
typedef uint8_t kymo__x8;
#define KYMO__KIND_x16 KYMO_FIELD_UINT
#define KYMO__FLAGS_x16 KYMO_FIELD_HEX
typedef uint16_t kymo__x16;
#define KYMO__KIND_x32 KYMO_FIELD_UINT
#define KYMO__FLAGS_x32 KYMO_FIELD_HEX
typedef uint32_t kymo__x32;
#define KYMO__KIND_x64 KYMO_FIELD_UINT
#define KYMO__FLAGS_x64 KYMO_FIELD_HEX
typedef uint64_t kymo__x64;
#define KYMO__KIND_net16 KYMO_FIELD_UINT
#define KYMO__FLAGS_net16 KYMO_FIELD_NETWORK
typedef uint16_t kymo__net16;
#define KYMO__KIND_net32 KYMO_FIELD_UINT
#define KYMO__FLAGS_net32 KYMO_FIELD_NETWORK
typedef uint32_t kymo__net32;
#define KYMO__KIND_net64 KYMO_FIELD_UINT
#define KYMO__FLAGS_net64 KYMO_FIELD_NETWORK
typedef uint64_t kymo__net64;
#define KYMO__KIND_netx16 KYMO_FIELD_UINT
#define KYMO__FLAGS_netx16 KYMO_FIELD_NETWORK | KYMO_FIELD_HEX
typedef uint16_t kymo__netx16;
#define KYMO__KIND_netx32 KYMO_FIELD_UINT
#define KYMO__FLAGS_netx32 KYMO_FIELD_NETWORK | KYMO_FIELD_HEX
typedef uint32_t kymo__netx32;
#define KYMO__KIND_netx64 KYMO_FIELD_UINT
#define KYMO__FLAGS_netx64 KYMO_FIELD_NETWORK | KYMO_FIELD_HEX
typedef uint64_t kymo__netx64;
#define KYMO__KIND_f32 KYMO_FIELD_FLOAT
#define KYMO__FLAGS_f32 0
typedef float kymo__f32;
#define KYMO__KIND_f64 KYMO_FIELD_FLOAT
#define KYMO__FLAGS_f64 0
typedef double kymo__f64;
/* Not "bool", which <stdbool.h> makes a macro. */
#define KYMO__KIND_truth KYMO_FIELD_BOOL
#define KYMO__FLAGS_truth 0
typedef uint8_t kymo__truth;
#define KYMO__KIND_ptr KYMO_FIELD_UINT
#define KYMO__FLAGS_ptr KYMO_FIELD_HEX
typedef uintptr_t kymo__ptr;
#define KYMO__FLAGS_enum_i8 KYMO_FIELD_SIGNED
#define KYMO__FLAGS_enum_i16 KYMO_FIELD_SIGNED
#define KYMO__FLAGS_enum_i32 KYMO_FIELD_SIGNED
#define KYMO__FLAGS_enum_i64 KYMO_FIELD_SIGNED
#define KYMO__FLAGS_enum_u8 0
#define KYMO__FLAGS_enum_u16 0
#define KYMO__FLAGS_enum_u32 0
#define KYMO__FLAGS_enum_u64 0

#define KYMO__F_kymo_i8(n, v) SCALAR, (i8, n, v)
#define KYMO__F_kymo_array_i8(n, p, c) ARRAY, (i8, n, p, c)
#define KYMO__F_kymo_seq_i8(n, p, c) SEQUENCE, (i8, n, p, c)
#define KYMO__F_kymo_i16(n, v) SCALAR, (i16, n, v)
#define KYMO__F_kymo_array_i16(n, p, c) ARRAY, (i16, n, p, c)
#define KYMO__F_kymo_seq_i16(n, p, c) SEQUENCE, (i16, n, p, c)
#define KYMO__F_kymo_i32(n, v) SCALAR, (i32, n, v)
#define KYMO__F_kymo_array_i32(n, p, c) ARRAY, (i32, n, p, c)
#define KYMO__F_kymo_seq_i32(n, p, c) SEQUENCE, (i32, n, p, c)
#define KYMO__F_kymo_i64(n, v) SCALAR, (i64, n, v)
#define KYMO__F_kymo_array_i64(n, p, c) ARRAY, (i64, n, p, c)
#define KYMO__F_kymo_seq_i64(n, p, c) SEQUENCE, (i64, n, p, c)
#define KYMO__F_kymo_u8(n, v) SCALAR, (u8, n, v)
#define KYMO__F_kymo_array_u8(n, p, c) ARRAY, (u8, n, p, c)
#define KYMO__F_kymo_seq_u8(n, p, c) SEQUENCE, (u8, n, p, c)
#define KYMO__F_kymo_u16(n, v) SCALAR, (u16, n, v)
#define KYMO__F_kymo_array_u16(n, p, c) ARRAY, (u16, n, p, c)
#define KYMO__F_kymo_seq_u16(n, p, c) SEQUENCE, (u16, n, p, c)
#define KYMO__F_kymo_u32(n, v) SCALAR, (u32, n, v)
#define KYMO__F_kymo_array_u32(n, p, c) ARRAY, (u32, n, p, c)
#define KYMO__F_kymo_seq_u32(n, p, c) SEQUENCE, (u32, n, p, c)
#define KYMO__F_kymo_u64(n, v) SCALAR, (u64, n, v)
#define KYMO__F_kymo_array_u64(n, p, c) ARRAY, (u64, n, p, c)
#define KYMO__F_kymo_seq_u64(n, p, c) SEQUENCE, (u64, n, p, c)
#define KYMO__F_kymo_x8(n, v) SCALAR, (x8, n, v)
#define KYMO__F_kymo_array_x8(n, p, c) ARRAY, (x8, n, p, c)
#define KYMO__F_kymo_seq_x8(n, p, c) SEQUENCE, (x8, n, p, c)
#define KYMO__F_kymo_x16(n, v) SCALAR, (x16, n, v)
#define KYMO__F_kymo_array_x16(n, p, c) ARRAY, (x16, n, p, c)
#define KYMO__F_kymo_seq_x16(n, p, c) SEQUENCE, (x16, n, p, c)
#define KYMO__F_kymo_x32(n, v) SCALAR, (x32, n, v)
#define KYMO__F_kymo_array_x32(n, p, c) ARRAY, (x32, n, p, c)
#define KYMO__F_kymo_seq_x32(n, p, c) SEQUENCE, (x32, n, p, c)
#define KYMO__F_kymo_x64(n, v) SCALAR, (x64, n, v)
#define KYMO__F_kymo_array_x64(n, p, c) ARRAY, (x64, n, p, c)
#define KYMO__F_kymo_seq_x64(n, p, c) SEQUENCE, (x64, n, p, c)
#define KYMO__F_kymo_net16(n, v) SCALAR, (net16, n, v)
#define KYMO__F_kymo_array_net16(n, p, c) ARRAY, (net16, n, p, c)
#define KYMO__F_kymo_seq_net16(n, p, c) SEQUENCE, (net16, n, p, c)
#define KYMO__F_kymo_net32(n, v) SCALAR, (net32, n, v)
#define KYMO__F_kymo_array_net32(n, p, c) ARRAY, (net32, n, p, c)
#define KYMO__F_kymo_seq_net32(n, p, c) SEQUENCE, (net32, n, p, c)
#define KYMO__F_kymo_net64(n, v) SCALAR, (net64, n, v)
#define KYMO__F_kymo_array_net64(n, p, c) ARRAY, (net64, n, p, c)
#define KYMO__F_kymo_seq_net64(n, p, c) SEQUENCE, (net64, n, p, c)
#define KYMO__F_kymo_netx16(n, v) SCALAR, (netx16, n, v)
#define KYMO__F_kymo_array_netx16(n, p, c) ARRAY, (netx16, n, p, c)
#define KYMO__F_kymo_seq_netx16(n, p, c) SEQUENCE, (netx16, n, p, c)
#define KYMO__F_kymo_netx32(n, v) SCALAR, (netx32, n, v)
#define KYMO__F_kymo_array_netx32(n, p, c) ARRAY, (netx32, n, p, c)
#define KYMO__F_kymo_seq_netx32(n, p, c) SEQUENCE, (netx32, n, p, c)
#define KYMO__F_kymo_netx64(n, v) SCALAR, (netx64, n, v)
#define KYMO__F_kymo_array_netx64(n, p, c) ARRAY, (netx64, n, p, c)
#define KYMO__F_kymo_seq_netx64(n, p, c) SEQUENCE, (netx64, n, p, c)
#define KYMO__F_kymo_f32(n, v) SCALAR, (f32, n, v)
#define KYMO__F_kymo_array_f32(n, p, c) ARRAY, (f32, n, p, c)
#define KYMO__F_kymo_seq_f32(n, p, c) SEQUENCE, (f32, n, p, c)
#define KYMO__F_kymo_f64(n, v) SCALAR, (f64, n, v)
#define KYMO__F_kymo_array_f64(n, p, c) ARRAY, (f64, n, p, c)
#define KYMO__F_kymo_seq_f64(n, p, c) SEQUENCE, (f64, n, p, c)
#define KYMO__F_kymo_bool(n, v) SCALAR, (truth, n, v)
#define KYMO__F_kymo_array_bool(n, p, c) ARRAY, (truth, n, p, c)
#define KYMO__F_kymo_seq_bool(n, p, c) SEQUENCE, (truth, n, p, c)
#define KYMO__F_kymo_ptr(n, v) SCALAR, (ptr, n, v)
#define KYMO__F_kymo_array_ptr(n, p, c) ARRAY, (ptr, n, p, c)
#define KYMO__F_kymo_seq_ptr(n, p, c) SEQUENCE, (ptr, n, p, c)
#define KYMO__F_kymo_enum_i8(n, e, v) ENUM, (i8, n, e, v)
#define KYMO__F_kymo_enum_i16(n, e, v) ENUM, (i16, n, e, v)
#define KYMO__F_kymo_enum_i32(n, e, v) ENUM, (i32, n, e, v)
#define KYMO__F_kymo_enum_i64(n, e, v) ENUM, (i64, n, e, v)
#define KYMO__F_kymo_enum_u8(n, e, v) ENUM, (u8, n, e, v)
#define KYMO__F_kymo_enum_u16(n, e, v) ENUM, (u16, n, e, v)
#define KYMO__F_kymo_enum_u32(n, e, v) ENUM, (u32, n, e, v)
#define KYMO__F_kymo_enum_u64(n, e, v) ENUM, (u64, n, e, v)
#define KYMO__VALUE_i8(v) (v)
#define KYMO__VALUE_i16(v) (v)
#define KYMO__VALUE_i32(v) (v)
#define KYMO__VALUE_i64(v) (v)
#define KYMO__VALUE_u8(v) (v)
#define KYMO__VALUE_u16(v) (v)
#define KYMO__VALUE_u32(v) (v)
#define KYMO__VALUE_u64(v) (v)
#define KYMO__VALUE_x8(v) (v)
#define KYMO__VALUE_x16(v) (v)
#define KYMO__VALUE_x32(v) (v)
#define KYMO__VALUE_x64(v) (v)
#define KYMO__VALUE_net16(v) (v)
#define KYMO__VALUE_net32(v) (v)
#define KYMO__VALUE_net64(v) (v)
#define KYMO__VALUE_netx16(v) (v)
#define KYMO__VALUE_netx32(v) (v)
#define KYMO__VALUE_netx64(v) (v)
#define KYMO__VALUE_f32(v) (v)
#define KYMO__VALUE_f64(v) (v)
#define KYMO__VALUE_truth(v) ((v) ? 1 : 0)
#define KYMO__VALUE_ptr(v) ((uintptr_t)(v))
#define KYMO__F_kymo_enum(n, e, v) ENUM, (i32, n, e, v)
#define KYMO__F_kymo_array_enum(n, e, p, c) ENUM_ARRAY, (n, e, p, c)
#define KYMO__F_kymo_seq_enum(n, e, p, c) ENUM_SEQUENCE, (n, e, p, c)
#define KYMO__F_kymo_string(n, s) STRING, (n, s)
#define KYMO__F_kymo_array_string(n, p, c) STRING_ARRAY, (n, p, c)
#define KYMO__F_kymo_seq_string(n, p, c) STRING_SEQUENCE, (n, p, c)
#define KYMO__F_kymo_text(n, p, c) TEXT, (n, p, c)
#define KYMO__F_kymo_text_seq(n, p, c) BYTES, (TEXT_SEQUENCE, n, p, c)
#define KYMO__F_kymo_blob(n, ...) KYMO__BLOB(__VA_ARGS__, MEDIA_BLOB, BLOB, 0), (n, __VA_ARGS__)
#define KYMO__BLOB(a, b, c, kind, ...) kind

/* Up to this many bytes are copied to the scratch buffer; what is longer is copied from where it is. */
#define KYMO__INLINE_MAX 64
#define KYMO__INLINE(bytes) ((bytes) <= KYMO__INLINE_MAX ? (bytes) : 0)

#define KYMO__DESC_SCALAR(T, n, v) \
	{KYMO__KIND_##T, 0, (uint8_t)sizeof(kymo__##T), KYMO__FLAGS_##T, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_SCALAR(T, n, v) +sizeof(kymo__##T)
#define KYMO__PIECES_SCALAR(T, n, v)
#define KYMO__PUT_SCALAR(T, n, v) kymo__put_##T(&kymo__c, KYMO__VALUE_##T(v));

#define KYMO__ENUM(type, ...) \
	static const struct kymo_enum_label kymo__labels_##type[] = {__VA_ARGS__}; \
	static const struct kymo_enum_type kymo__enum_##type = {#type, kymo__labels_##type, \
		(uint32_t)(sizeof(kymo__labels_##type) / sizeof(kymo__labels_##type[0])), 0};

#define KYMO__DESC_ENUM(T, n, e, v) \
	{KYMO_FIELD_ENUM, 0, (uint8_t)sizeof(kymo__##T), KYMO__FLAGS_enum_##T, 0, KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM(T, n, e, v) +sizeof(kymo__##T)
#define KYMO__PIECES_ENUM(T, n, e, v)
#define KYMO__PUT_ENUM(T, n, e, v) kymo__put_##T(&kymo__c, (kymo__##T)(v));

#define KYMO__DESC_ARRAY(T, n, p, c) \
	{KYMO_FIELD_ARRAY, KYMO__KIND_##T, (uint8_t)sizeof(kymo__##T), KYMO__FLAGS_##T, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_ARRAY(T, n, p, c) +KYMO__INLINE((c) * sizeof(kymo__##T))
#define KYMO__PIECES_ARRAY(T, n, p, c) +2
#define KYMO__PUT_ARRAY(T, n, p, c) kymo__put_bytes(&kymo__c, (p), (c) * sizeof(kymo__##T));

#define KYMO__DESC_SEQUENCE(T, n, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO__KIND_##T, (uint8_t)sizeof(kymo__##T), KYMO__FLAGS_##T, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_SEQUENCE(T, n, p, c) +4 + KYMO__INLINE_MAX
#define KYMO__PIECES_SEQUENCE(T, n, p, c) +2
#define KYMO__PUT_SEQUENCE(T, n, p, c) kymo__put_sequence(&kymo__c, (p), (c), sizeof(kymo__##T));

#define KYMO__DESC_ENUM_ARRAY(n, e, p, c) \
	{KYMO_FIELD_ARRAY, KYMO_FIELD_ENUM, 4, KYMO_FIELD_SIGNED, (c), KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM_ARRAY(n, e, p, c) KYMO__ROOM_ARRAY(i32, n, p, c)
#define KYMO__PIECES_ENUM_ARRAY(n, e, p, c) +2
#define KYMO__PUT_ENUM_ARRAY(n, e, p, c) KYMO__PUT_ARRAY(i32, n, p, c)

#define KYMO__DESC_ENUM_SEQUENCE(n, e, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_ENUM, 4, KYMO_FIELD_SIGNED, 0, KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM_SEQUENCE(n, e, p, c) KYMO__ROOM_SEQUENCE(i32, n, p, c)
#define KYMO__PIECES_ENUM_SEQUENCE(n, e, p, c) +2
#define KYMO__PUT_ENUM_SEQUENCE(n, e, p, c) KYMO__PUT_SEQUENCE(i32, n, p, c)

#define KYMO__DESC_STRING(n, s) {KYMO_FIELD_STRING, 0, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING(n, s) +KYMO__INLINE_MAX + 1
#define KYMO__PIECES_STRING(n, s) +2
#define KYMO__PUT_STRING(n, s) kymo__put_string(&kymo__c, (s), KYMO__INLINE_MAX);

#define KYMO__DESC_STRING_ARRAY(n, p, c) {KYMO_FIELD_ARRAY, KYMO_FIELD_STRING, 1, 0, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING_ARRAY(n, p, c) +(c) * (KYMO_PIECE_MIN + 1)
#define KYMO__PIECES_STRING_ARRAY(n, p, c) +(c) * 2
#define KYMO__PUT_STRING_ARRAY(n, p, c) kymo__put_strings(&kymo__c, (p), (c));

#define KYMO__DESC_STRING_SEQUENCE(n, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRING, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING_SEQUENCE(n, p, c) +4 KYMO__ROOM_STRING_ARRAY(n, p, KYMO_SEQ_STRINGS_MAX)
#define KYMO__PIECES_STRING_SEQUENCE(n, p, c) +KYMO_SEQ_STRINGS_MAX * 2
#define KYMO__PUT_STRING_SEQUENCE(n, p, c) kymo__put_string_sequence(&kymo__c, (p), (c));

#define KYMO__DESC_TEXT(n, p, c) {KYMO_FIELD_TEXT, 0, 1, 0, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_TEXT(n, p, c) KYMO__ROOM_ARRAY(u8, n, p, c)
#define KYMO__PIECES_TEXT(n, p, c) +2
#define KYMO__PUT_TEXT(n, p, c) KYMO__PUT_ARRAY(u8, n, p, c)

#define KYMO__DESC_BYTES(K, n, p, c) {KYMO_FIELD_##K, 0, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_BYTES(K, n, p, c) KYMO__ROOM_SEQUENCE(u8, n, p, c)
#define KYMO__PIECES_BYTES(K, n, p, c) +2
#define KYMO__PUT_BYTES(K, n, p, c) KYMO__PUT_SEQUENCE(u8, n, p, c)

#define KYMO__DESC_BLOB(n, p, c) KYMO__DESC_BYTES(BLOB, n, p, c)
#define KYMO__ROOM_BLOB(n, p, c) KYMO__ROOM_SEQUENCE(u8, n, p, c)
#define KYMO__PIECES_BLOB(n, p, c) +2
#define KYMO__PUT_BLOB(n, p, c) KYMO__PUT_SEQUENCE(u8, n, p, c)

#define KYMO__DESC_MEDIA_BLOB(n, media, p, c) \
	{KYMO_FIELD_MEDIA, 0, 1, 0, 0, KYMO__STRING(n) "_media_type", media}, KYMO__DESC_BLOB(n, p, c)
#define KYMO__ROOM_MEDIA_BLOB(n, media, p, c) +1 KYMO__ROOM_BLOB(n, p, c)
#define KYMO__PIECES_MEDIA_BLOB(n, media, p, c) +2
#define KYMO__PUT_MEDIA_BLOB(n, media, p, c) kymo__put_u8(&kymo__c, 0); KYMO__PUT_BLOB(n, p, c)

/*
 * Puts the event into the object's list: a pointer in section kymo_events, which linkers are to keep even where
 * they drop what nothing refers to. In C++ by assembly, because a function may be a template or inline, and GCC
 * refuses to mix those with others in one section of variables.
 */
#ifdef __has_attribute
#if __has_attribute(retain)
#define KYMO__IN_SECTION(name) __attribute__((section(name), used, retain))
#endif
#endif
#ifndef KYMO__IN_SECTION
#define KYMO__IN_SECTION(name) __attribute__((section(name), used))
#endif
#define KYMO__IN_LIST KYMO__IN_SECTION("kymo_events")
#ifdef __LP64__
#define KYMO__WORD ".balign 8\n\t.quad "
#define KYMO__WORD_BYTES "8"
#else
#define KYMO__WORD ".balign 4\n\t.long "
#define KYMO__WORD_BYTES "4"
#endif

#if !defined(__cplusplus) || defined(__clang__)
#define KYMO__LIST(event) static const struct kymo_event *kymo__entry KYMO__IN_LIST = &event;
#else
#define KYMO__LIST(event) \
	KYMO__ASM( \
		".if .gasversion. >= 23600\n\t.pushsection kymo_events, \"awR\"\n\t" \
		".else\n\t.pushsection kymo_events, \"aw\"\n\t.endif\n\t" \
		KYMO__WORD KYMO__SYMBOL "\n\t.popsection" : : KYMO__ADDRESS(&event));
#if __GNUC__ >= 9 /* __inline__: of no weight where the compiler decides what to inline */
#define KYMO__ASM __asm__ __volatile__ __inline__
#else
#define KYMO__ASM __asm__ __volatile__
#endif
/* How to write an address that the linker knows: most constraints refuse it in position-independent code. */
#if defined(__x86_64__) || defined(__i386__)
#define KYMO__SYMBOL "%p0"
#define KYMO__ADDRESS(event) "X"(event)
#elif defined(__aarch64__)
#define KYMO__SYMBOL "%0"
#define KYMO__ADDRESS(event) "S"(event)
#else
#define KYMO__SYMBOL "%c0"
#define KYMO__ADDRESS(event) "i"(event)
#endif
#endif

/* A function to call when the tracer is loaded later than the object; and the note by which it is found (KYMO_NOTE_LATE). */
#define KYMO__LATE(function) \
	static void (*const function##_late)(void) KYMO__IN_SECTION("kymo_late") = function;
__asm__(".pushsection .note.kymo, \"a\", %note\n\t"
	".weak __start_kymo_late, __stop_kymo_late\n\t.hidden __start_kymo_late, __stop_kymo_late\n\t"
	".balign 4\n\t.long 12, 2 * " KYMO__WORD_BYTES ", 1\n\t.asciz \"kymo.loaded\"\n\t"
	KYMO__WORD "__start_kymo_late - .\n\t" KYMO__WORD "__stop_kymo_late - .\n\t.popsection");

#define KYMO__DEFINE_EVENT(provider, name, level, fields) \
	static struct kymo_event_state kymo__state; \
	static const struct kymo_event kymo__event = { \
		(uint32_t)sizeof(struct kymo_event), KYMO_EVENT_PLAIN, level, provider, name, fields, \
		&kymo__state, __FILE__, __LINE__, 0}; \
	KYMO__LIST(kymo__event)

#define KYMO__STATEMENT(provider, name, level, ...) \
	do { \
		static const struct kymo_field kymo__fields[] = { \
			KYMO__EACH(KYMO__DESC, __VA_ARGS__) KYMO__NO_FIELD}; \
		KYMO__DEFINE_EVENT(provider, name, level, kymo__fields) \
		if (KYMO__IS_ENABLED(kymo__state)) \
			KYMO__RECORD(&kymo__event, __VA_ARGS__) \
	} while (0)

/* Evaluates the values, builds the record and hands it over. */
#define KYMO__RECORD(event, ...) { \
		unsigned char kymo__room[KYMO_SCRATCH_SLACK KYMO__EACH(KYMO__ROOM, __VA_ARGS__)]; \
		struct kymo_piece kymo__list[1 KYMO__EACH(KYMO__PIECES, __VA_ARGS__)]; \
		struct kymo__cursor kymo__c = {kymo__room, kymo__room, 0, 0, kymo__list}; \
		__asm__("" : "=m"(kymo__room)); /* else compilers warn that an event without fields has none */ \
		KYMO__EACH(KYMO__PUT, __VA_ARGS__) \
		kymo__hand_over(event, &kymo__c, kymo__room, sizeof(kymo__room) - KYMO_SCRATCH_SLACK, \
			sizeof(kymo__list) / sizeof(kymo__list[0]) > 1); \
	}

/* A class is a table of fields and a function that records an event of it; an instance calls that. */
#define KYMO__CLASS(provider, cls, ...) \
	static const struct kymo_field kymo__fields_##provider##__##cls[] __attribute__((unused)) = { \
		KYMO__EACH(KYMO__DESC, __VA_ARGS__) KYMO__NO_FIELD}; \
	static inline __attribute__((unused)) void kymo__class_##provider##__##cls( \
		const struct kymo_event *kymo__ev KYMO__UNWRAP(KYMO__FIRST_TOKEN(__VA_ARGS__, 0))) \
		KYMO__RECORD(kymo__ev, __VA_ARGS__)
#define KYMO__UNWRAP(list) KYMO__UNWRAP_ list
#define KYMO__UNWRAP_(...) __VA_ARGS__
#define KYMO__INSTANCE(provider, cls, name, level) \
	KYMO__C_BEGIN \
	extern __attribute__((weak, visibility("hidden"))) struct kymo_event_state \
		kymo__state_##provider##__##name; \
	extern __attribute__((weak, visibility("hidden"))) const struct kymo_event \
		kymo__event_##provider##__##name; \
	struct kymo_event_state kymo__state_##provider##__##name = {0, 0, NULL, NULL, NULL, NULL, NULL}; \
	const struct kymo_event kymo__event_##provider##__##name = { \
		(uint32_t)sizeof(struct kymo_event), KYMO_EVENT_PLAIN, level, #provider, #name, \
		kymo__fields_##provider##__##cls, &kymo__state_##provider##__##name, \
		__FILE__, __LINE__, 0}; \
	static const struct kymo_event *kymo__entry_##provider##__##name \
		KYMO__IN_LIST = &kymo__event_##provider##__##name; \
	static __typeof__(kymo__class_##provider##__##cls) *const kymo__emit_##provider##__##name \
		__attribute__((unused)) = kymo__class_##provider##__##cls; \
	KYMO__C_END

#define KYMO__STATE(provider, name) kymo__state_##provider##__##name
#define KYMO__TRACE_ONE(provider, name) \
	do { \
		if (KYMO__IS_ENABLED(kymo__state_##provider##__##name)) \
			kymo__emit_##provider##__##name(&kymo__event_##provider##__##name); \
	} while (0)
#define KYMO__TRACE_MORE(provider, name, ...) \
	do { \
		if (KYMO__IS_ENABLED(kymo__state_##provider##__##name)) \
			kymo__emit_##provider##__##name(&kymo__event_##provider##__##name, __VA_ARGS__); \
	} while (0)

/* clang-format on */

/* Where the next byte of the record goes, and what of it is closed already. */
struct kymo__cursor {
	unsigned char *p;     /* in the scratch buffer */
	unsigned char *start; /* of the part of the scratch buffer that is not in the list yet */
	size_t len;	      /* bytes in the list, or KYMO__TOO_LARGE and more */
	size_t n;	      /* entries in the list */
	struct kymo_piece *list;
};

/* No sub-buffer has room for this: discarded as too large, and counted. Sums that stop there do not wrap. */
#define KYMO__TOO_LARGE (SIZE_MAX / 3)

#define KYMO__DEFINE_PUT(T)                                                                        \
	static inline __attribute__((always_inline, unused)) void kymo__put_##T(                   \
		struct kymo__cursor *c, kymo__##T v)                                               \
	{                                                                                          \
		memcpy(c->p, &v, sizeof(v));                                                       \
		c->p += sizeof(v);                                                                 \
	}

KYMO__DEFINE_PUT(i8)
KYMO__DEFINE_PUT(i16)
KYMO__DEFINE_PUT(i32)
KYMO__DEFINE_PUT(i64)
KYMO__DEFINE_PUT(u8)
KYMO__DEFINE_PUT(u16)
KYMO__DEFINE_PUT(u32)
KYMO__DEFINE_PUT(u64)
KYMO__DEFINE_PUT(x8)
KYMO__DEFINE_PUT(x16)
KYMO__DEFINE_PUT(x32)
KYMO__DEFINE_PUT(x64)
KYMO__DEFINE_PUT(net16)
KYMO__DEFINE_PUT(net32)
KYMO__DEFINE_PUT(net64)
KYMO__DEFINE_PUT(netx16)
KYMO__DEFINE_PUT(netx32)
KYMO__DEFINE_PUT(netx64)
KYMO__DEFINE_PUT(f32)
KYMO__DEFINE_PUT(f64)
KYMO__DEFINE_PUT(truth)
KYMO__DEFINE_PUT(ptr)

static inline __attribute__((unused)) void kymo__put_piece(
	struct kymo__cursor *c, const void *ptr, size_t len, uint32_t flags)
{
	struct kymo_piece *piece = c->list + c->n;

	if (c->p != c->start) {
		piece->ptr = c->start;
		piece->len = (uint32_t)(c->p - c->start);
		piece->flags = KYMO_PIECE_SCRATCH;
		c->len += piece->len;
		c->start = c->p;
		piece++;
	}
	if (len) {
		piece->ptr = ptr;
		/* Where the length does not fit, the sum is too large anyway. */
		piece->len = (uint32_t)len;
		piece->flags = flags;
		if (len < KYMO__TOO_LARGE && c->len < KYMO__TOO_LARGE)
			c->len += len;
		else
			c->len = KYMO__TOO_LARGE;
		piece++;
	}
	c->n = (size_t)(piece - c->list);
}

static inline __attribute__((unused)) void kymo__put_bytes(
	struct kymo__cursor *c, const void *ptr, size_t len)
{
	if (len <= KYMO__INLINE_MAX) {
		if (len)
			memcpy(c->p, ptr, len);
		c->p += len;
	} else {
		kymo__put_piece(c, ptr, len, 0);
	}
}

static inline __attribute__((unused)) void kymo__put_sequence(
	struct kymo__cursor *c, const void *ptr, size_t n, size_t size)
{
	uint32_t count = (uint32_t)n;

	memcpy(c->p, &count, sizeof(count));
	c->p += sizeof(count);
	if (n <= UINT32_MAX / size)
		kymo__put_bytes(c, ptr, n * size);
	else
		c->len = KYMO__TOO_LARGE;
}

/*
 * Copies n bytes of text, by words where there is one. The text may change meanwhile (another thread): what is
 * copied ends where a NUL was copied. Returns its length.
 */
static inline __attribute__((unused)) size_t kymo__copy_text(
	unsigned char *to, const char *from, size_t n)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t word, nul = 0;
	size_t i = 0;

	if (n < sizeof(word)) {
		while (i < n && (to[i] = (unsigned char)((const volatile char *)from)[i]) != 0)
			i++;
		return i;
	}
	for (;;) {
		memcpy(&word, from + i, sizeof(word));
		__asm__("" : "+r"(word)); /* what is looked at is what was copied */
		memcpy(to + i, &word, sizeof(word));
		nul |= (word - ones) & ~word; /* top bit of a byte set: it, or one below it, is 0 */
		if (i == n - sizeof(word))
			break;
		i = i + sizeof(word) < n - sizeof(word) ? i + sizeof(word) : n - sizeof(word);
	}
	if (__builtin_expect((nul & (ones << 7)) != 0, 0)) {
		to[n] = 0;
		n = strlen((const char *)to);
	}
	return n;
}

/* In a piece, the writer replaces a NUL that was not there when the text was measured. */
static inline __attribute__((unused)) void kymo__put_string(
	struct kymo__cursor *c, const char *s, size_t inline_max)
{
	size_t n;

	if (!s)
		s = "(null)";
	n = strlen(s);
	if (n <= inline_max)
		c->p += kymo__copy_text(c->p, s, n);
	else
		kymo__put_piece(c, s, n, KYMO_PIECE_TEXT);
	*c->p++ = 0;
}

static inline __attribute__((unused)) void kymo__put_strings(
	struct kymo__cursor *c, const char *const *strings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kymo__put_string(c, strings[i], KYMO_PIECE_MIN - 1);
}

static inline __attribute__((unused)) void kymo__put_string_sequence(
	struct kymo__cursor *c, const char *const *strings, size_t n)
{
	uint32_t count = (uint32_t)n;

	memcpy(c->p, &count, sizeof(count));
	c->p += sizeof(count);
	if (n <= KYMO_SEQ_STRINGS_MAX)
		kymo__put_strings(c, strings, n);
	else
		c->len = KYMO__TOO_LARGE;
}

/* Where there can be no pieces, all fields are scalars, and the record takes all of the room. Both are constants. */
static inline __attribute__((always_inline, unused)) void kymo__hand_over(
	const struct kymo_event *event, struct kymo__cursor *c, unsigned char *room, size_t size,
	int may_have_pieces)
{
	struct kymo_event_state *state = event->state;
	uint64_t word = 0;

	if (!may_have_pieces && size <= sizeof(word)) {
		memcpy(&word, room,
			size <= sizeof(word) ? size : 0); /* for compilers that look at dead code */
		state->record_word(event, word, state->hook, size);
	} else if (!may_have_pieces) {
		state->record_flat(event, room, state->hook, size);
	} else if (!c->n) {
		state->record_flat(event, room, state->hook, c->len + (size_t)(c->p - room));
	} else {
		kymo__put_piece(c, NULL, 0, 0);
		state->record(event, room, c->len, c->list, c->n);
	}
}

static inline __attribute__((unused, format(printf, 3, 0))) char *kymo__format(
	char *small, size_t size, const char *format, va_list ap)
{
	va_list again;
	char *large = small;
	int n;

	va_copy(again, ap);
	n = vsnprintf(small, size, format, ap);
	if (n < 0) {
		small[0] = 0;
	} else if ((size_t)n >= size) {
		large = (char *)malloc((size_t)n + 1);
		if (large)
			vsnprintf(large, (size_t)n + 1, format, again);
		else
			large = (char *)memcpy(small, "(out of memory)", sizeof("(out of memory)"));
	}
	va_end(again);
	return large;
}

static __attribute__((noinline, unused, format(printf, 2, 3))) void kymo__tracef(
	const struct kymo_event *event, const char *format, ...)
{
	char small[512], *msg;
	va_list ap;

	va_start(ap, format);
	msg = kymo__format(small, sizeof(small), format, ap);
	va_end(ap);
	KYMO__RECORD(event, tracef, kymo_string(msg, msg))
	if (msg != small)
		free(msg);
}

static __attribute__((noinline, unused, format(printf, 3, 4))) void kymo__tracelog(
	const struct kymo_event *event, const char *func, const char *format, ...)
{
	char small[512], *msg;
	va_list ap;

	va_start(ap, format);
	msg = kymo__format(small, sizeof(small), format, ap);
	va_end(ap);
	KYMO__RECORD(event, tracelog, kymo_i32(line, (int32_t)event->line),
		kymo_string(file, event->file), kymo_string(func, func), kymo_string(msg, msg))
	if (msg != small)
		free(msg);
}

/*
 * Makes the object's events known to the tracer: once for each executable or shared object, however many
 * of its sources include this header (weak and hidden: the linker keeps one of each). The library is used if it
 * is part of the program (static, linked or preloaded), else loaded if it is installed, else done without, until the
 * program loads it itself.
 *
 * Functions that may be missing are called by weak names of our own, so that a use of the program's own, of dlopen
 * say, remains as strong as it was.
 */
KYMO__C_BEGIN
void kymo_object_register(struct kymo_object *object);
void kymo_object_unregister(struct kymo_object *object);
static __typeof__(kymo_object_register) kymo__weak_register
	__attribute__((weakref("kymo_object_register")));
static __typeof__(kymo_object_unregister) kymo__weak_unregister
	__attribute__((weakref("kymo_object_unregister")));
static __typeof__(dlopen) kymo__weak_dlopen __attribute__((nothrow, weakref("dlopen")));
static __typeof__(dlsym) kymo__weak_dlsym __attribute__((nothrow, weakref("dlsym")));
extern const struct kymo_event *const __start_kymo_events[]
	__attribute__((weak, visibility("hidden")));
extern const struct kymo_event *const __stop_kymo_events[]
	__attribute__((weak, visibility("hidden")));
extern struct kymo_object kymo__object;
extern void (*kymo__leave)(struct kymo_object *);
/*
 * Priority: before the constructors of C++ objects, which may have events. It stands in the declaration, because
 * GCC's -flto forgets one that is only in the definition that follows.
 */
void kymo__object_loaded(void) __attribute__((constructor(101)));
void kymo__object_again(void);
void kymo__object_unloaded(void) __attribute__((destructor(101)));

__attribute__((weak, visibility("hidden"))) struct kymo_object kymo__object = {
	0, KYMO_ABI_VERSION, NULL, NULL, NULL};
__attribute__((weak, visibility("hidden"))) void (*kymo__leave)(struct kymo_object *) = NULL;

/*
 * The tracer library, or NULL. A static program may have dlopen, but the C library that libkymo would bring along
 * does not live in it: there, the program has no symbols that could be found.
 */
static inline __attribute__((unused)) void *kymo__library(void)
{
	void *self;

	if (!kymo__weak_dlopen || !kymo__weak_dlsym)
		return NULL;
	self = kymo__weak_dlopen(NULL, RTLD_NOW);
	if (!self || !kymo__weak_dlsym(self, "malloc"))
		return NULL;
	return kymo__weak_dlopen("libkymo.so.0", RTLD_NOW);
}

/* A function of the tracer's that is not linked with the program, or NULL. */
static inline __attribute__((unused)) void *kymo__find(const char *name)
{
	void *library = kymo__library();

	return library ? kymo__weak_dlsym(library, name) : NULL;
}

/* The same where the object has been registered with that tracer, which is not part of the program. */
static inline __attribute__((unused)) void *kymo__find_own(const char *name)
{
	return kymo__weak_register || !kymo__leave ? NULL : kymo__find(name);
}

__attribute__((weak, visibility("hidden"))) void kymo__object_loaded(void)
{
	void (*enter)(struct kymo_object *) = NULL;
	const char *const names[] = {"kymo_object_register", "kymo_object_unregister"};
	void *library, *address;

	if (kymo__object.size || &__start_kymo_events[0] == &__stop_kymo_events[0])
		return;
	kymo__object.begin = __start_kymo_events;
	kymo__object.end = __stop_kymo_events;
	if (kymo__weak_register) {
		enter = kymo__weak_register;
		kymo__leave = kymo__weak_unregister;
	} else {
		library = kymo__library();
		for (size_t i = 0; library && i < sizeof(names) / sizeof(names[0]); i++) {
			address = kymo__weak_dlsym(library, names[i]);
			memcpy(i ? &kymo__leave : &enter, &address, sizeof(address));
		}
	}
	kymo__object.size = (uint32_t)sizeof(kymo__object);
	if (enter)
		enter(&kymo__object);
}

/* Once more, when the tracer is there. */
__attribute__((weak, visibility("hidden"))) void kymo__object_again(void)
{
	if (!kymo__object.size || kymo__leave)
		return;
	kymo__object.size = 0;
	kymo__object_loaded();
}
KYMO__LATE(kymo__object_again)

__attribute__((weak, visibility("hidden"))) void kymo__object_unloaded(void)
{
	void (*leave)(struct kymo_object *) = kymo__leave;

	kymo__leave = NULL;
	if (leave)
		leave(&kymo__object);
}
KYMO__C_END

#endif
