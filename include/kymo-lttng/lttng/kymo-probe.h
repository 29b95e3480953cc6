/* SPDX-License-Identifier: MIT */
/*
 * Events of providers: the meaning of TRACEPOINT_EVENT and similar macros if
 * TRACEPOINT_CREATE_PROBES is defined.
 *
 * TP_FIELDS holds fields one after the other, without commas. Each becomes (KIND, how,
 * arguments...), so the whole is a sequence of brackets. An operation followed by it takes the
 * first bracket and leaves the code for it and the operation's other name, which takes the next
 * bracket. `how` is _REC for a field that is recorded, or the word that the _nowrite macros use for
 * an excluded field, which only filters see. An operation applies to one of the two. The operations
 * are those of <kymo/tracepoint.h>:
 *
 *	DESC	the field's entry in the static table of fields
 *	ROOM	the number of bytes that it may need in the scratch buffer
 *	PIECES	the number of entries that it may need in the list of pieces
 *	PUT	an expression, and a comma, that appends its value to the record
 */
#ifndef KYMO_LTTNG_PROBE_H
#define KYMO_LTTNG_PROBE_H

#pragma GCC system_header

#include <lttng/tracepoint.h>

#ifdef __cplusplus
extern "C++" { /* programs include their provider's header in extern "C" */
#include <type_traits>
}
#define KYMO__LTTNG_IS_SIGNED(type) (std::is_signed<type>::value)
#else
#define KYMO__LTTNG_IS_SIGNED(type) ((type)-1 < (type)1)
#endif

/* clang-format off */

/* --- fields --- */

#define LTTNG_UST_TP_FIELDS(...) __VA_ARGS__

#define lttng_ust_field_integer(type, item, src) (_INTEGER, _REC, type, item, src, 0)
#define lttng_ust_field_integer_hex(type, item, src) (_INTEGER, _REC, type, item, src, KYMO_FIELD_HEX)
#define lttng_ust_field_integer_network(type, item, src) (_INTEGER, _REC, type, item, src, KYMO_FIELD_NETWORK)
#define lttng_ust_field_integer_network_hex(type, item, src) (_INTEGER, _REC, type, item, src, KYMO_FIELD_NETWORK | KYMO_FIELD_HEX)
#define lttng_ust_field_integer_nowrite(type, item, src) (_INTEGER, _ASIDE, type, item, src, 0)
#define lttng_ust_field_float(type, item, src) (_FLOAT, _REC, type, item, src)
#define lttng_ust_field_float_nowrite(type, item, src) (_FLOAT, _ASIDE, type, item, src)
#define lttng_ust_field_enum(provider, name, type, item, src) (_ENUM, _REC, provider, name, type, item, src)
#define lttng_ust_field_enum_nowrite(provider, name, type, item, src) (_ENUM, _ASIDE, provider, name, type, item, src)
#define lttng_ust_field_string(item, src) (_STRING, _REC, item, src)
#define lttng_ust_field_string_nowrite(item, src) (_STRING, _ASIDE, item, src)
#define lttng_ust_field_array(type, item, src, n) (_ARRAY, _REC, type, item, src, n, 0)
#define lttng_ust_field_array_hex(type, item, src, n) (_ARRAY, _REC, type, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_array_network(type, item, src, n) (_ARRAY, _REC, type, item, src, n, KYMO_FIELD_NETWORK)
#define lttng_ust_field_array_network_hex(type, item, src, n) (_ARRAY, _REC, type, item, src, n, KYMO_FIELD_NETWORK | KYMO_FIELD_HEX)
#define lttng_ust_field_array_text(type, item, src, n) (_TEXT, _REC, item, src, n)
#define lttng_ust_field_array_nowrite(type, item, src, n) (_ARRAY, _ASIDE, type, item, src, n, 0)
#define lttng_ust_field_array_nowrite_hex(type, item, src, n) (_ARRAY, _ASIDE, type, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_array_network_nowrite(type, item, src, n) (_ARRAY, _ASIDE, type, item, src, n, KYMO_FIELD_NETWORK)
#define lttng_ust_field_array_network_nowrite_hex(type, item, src, n) (_ARRAY, _ASIDE, type, item, src, n, KYMO_FIELD_NETWORK | KYMO_FIELD_HEX)
#define lttng_ust_field_array_text_nowrite(type, item, src, n) (_TEXT, _ASIDE, item, src, n)
#define lttng_ust_field_sequence(type, item, src, n_type, n) (_SEQUENCE, _REC, type, item, src, n, 0)
#define lttng_ust_field_sequence_hex(type, item, src, n_type, n) (_SEQUENCE, _REC, type, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_sequence_network(type, item, src, n_type, n) (_SEQUENCE, _REC, type, item, src, n, KYMO_FIELD_NETWORK)
#define lttng_ust_field_sequence_network_hex(type, item, src, n_type, n) (_SEQUENCE, _REC, type, item, src, n, KYMO_FIELD_NETWORK | KYMO_FIELD_HEX)
#define lttng_ust_field_sequence_text(type, item, src, n_type, n) (_TEXT_SEQUENCE, _REC, item, src, n)
#define lttng_ust_field_sequence_nowrite(type, item, src, n_type, n) (_SEQUENCE, _ASIDE, type, item, src, n, 0)
#define lttng_ust_field_sequence_nowrite_hex(type, item, src, n_type, n) (_SEQUENCE, _ASIDE, type, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_sequence_network_nowrite(type, item, src, n_type, n) (_SEQUENCE, _ASIDE, type, item, src, n, KYMO_FIELD_NETWORK)
#define lttng_ust_field_sequence_network_nowrite_hex(type, item, src, n_type, n) (_SEQUENCE, _ASIDE, type, item, src, n, KYMO_FIELD_NETWORK | KYMO_FIELD_HEX)
#define lttng_ust_field_sequence_text_nowrite(type, item, src, n_type, n) (_TEXT_SEQUENCE, _ASIDE, item, src, n)
/* Media types are dropped: CTF 1.8 cannot express them. */
#define lttng_ust_field_fixed_length_blob(item, src, n, media_type) (_ARRAY, _REC, uint8_t, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_fixed_length_blob_nowrite(item, src, n, media_type) (_ARRAY, _ASIDE, uint8_t, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_variable_length_blob(item, src, n_type, n, media_type) (_SEQUENCE, _REC, uint8_t, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_variable_length_blob_nowrite(item, src, n_type, n, media_type) (_SEQUENCE, _ASIDE, uint8_t, item, src, n, KYMO_FIELD_HEX)
#define lttng_ust_field_unused(src)
#define lttng_ust_field_unused_nowrite(src)

#define LTTNG_UST_TP_ENUM_VALUES(...) (__VA_ARGS__)
#define lttng_ust_field_enum_value(label, value) KYMO_VALUE(label, value),
#define lttng_ust_field_enum_range(label, from, to) KYMO_RANGE(label, from, to),
#define lttng_ust_field_enum_auto(label) {label, KYMO_LABEL_AUTO},

#if LTTNG_UST_COMPAT_API(0)
#define TP_FIELDS LTTNG_UST_TP_FIELDS
#define TP_ENUM_VALUES LTTNG_UST_TP_ENUM_VALUES
#define ctf_integer lttng_ust_field_integer
#define ctf_integer_hex lttng_ust_field_integer_hex
#define ctf_integer_network lttng_ust_field_integer_network
#define ctf_integer_network_hex lttng_ust_field_integer_network_hex
#define ctf_integer_nowrite lttng_ust_field_integer_nowrite
#define ctf_float lttng_ust_field_float
#define ctf_float_nowrite lttng_ust_field_float_nowrite
#define ctf_enum lttng_ust_field_enum
#define ctf_enum_nowrite lttng_ust_field_enum_nowrite
#define ctf_enum_value lttng_ust_field_enum_value
#define ctf_enum_range lttng_ust_field_enum_range
#define ctf_enum_auto lttng_ust_field_enum_auto
#define ctf_string lttng_ust_field_string
#define ctf_string_nowrite lttng_ust_field_string_nowrite
#define ctf_array lttng_ust_field_array
#define ctf_array_hex lttng_ust_field_array_hex
#define ctf_array_network lttng_ust_field_array_network
#define ctf_array_network_hex lttng_ust_field_array_network_hex
#define ctf_array_text lttng_ust_field_array_text
#define ctf_array_nowrite lttng_ust_field_array_nowrite
#define ctf_array_nowrite_hex lttng_ust_field_array_nowrite_hex
#define ctf_array_network_nowrite lttng_ust_field_array_network_nowrite
#define ctf_array_network_nowrite_hex lttng_ust_field_array_network_nowrite_hex
#define ctf_array_text_nowrite lttng_ust_field_array_text_nowrite
#define ctf_sequence lttng_ust_field_sequence
#define ctf_sequence_hex lttng_ust_field_sequence_hex
#define ctf_sequence_network lttng_ust_field_sequence_network
#define ctf_sequence_network_hex lttng_ust_field_sequence_network_hex
#define ctf_sequence_text lttng_ust_field_sequence_text
#define ctf_sequence_nowrite lttng_ust_field_sequence_nowrite
#define ctf_sequence_nowrite_hex lttng_ust_field_sequence_nowrite_hex
#define ctf_sequence_network_nowrite lttng_ust_field_sequence_network_nowrite
#define ctf_sequence_network_nowrite_hex lttng_ust_field_sequence_network_nowrite_hex
#define ctf_sequence_text_nowrite lttng_ust_field_sequence_text_nowrite
#define ctf_unused lttng_ust_field_unused
#define ctf_unused_nowrite lttng_ust_field_unused_nowrite
#endif

/* --- operations on each field --- */

/*
 * Operations: two names each, which alternate, because a macro is not expanded within itself; and
 * one for the end of the fields.
 */
#define KYMO__LTTNG_EACH(op, fields) KYMO__LTTNG_CLOSE(KYMO__LTTNG_##op##_A fields)
#define KYMO__LTTNG_CLOSE(...) KYMO__LTTNG_CLOSE_(__VA_ARGS__)
#define KYMO__LTTNG_CLOSE_(...) __VA_ARGS__##_END

#define KYMO__LTTNG_DESC_A(kind, how, ...) KYMO__LTTNG_IF_REC##how(KYMO__LTTNG_FIELD##kind, (0, __VA_ARGS__)) KYMO__LTTNG_DESC_B
#define KYMO__LTTNG_DESC_B(kind, how, ...) KYMO__LTTNG_IF_REC##how(KYMO__LTTNG_FIELD##kind, (0, __VA_ARGS__)) KYMO__LTTNG_DESC_A
#define KYMO__LTTNG_DESC_A_END
#define KYMO__LTTNG_DESC_B_END
#define KYMO__LTTNG_DESC_ASIDE_A(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(KYMO__LTTNG_FIELD##kind, (KYMO_FIELD_ASIDE, __VA_ARGS__)) KYMO__LTTNG_DESC_ASIDE_B
#define KYMO__LTTNG_DESC_ASIDE_B(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(KYMO__LTTNG_FIELD##kind, (KYMO_FIELD_ASIDE, __VA_ARGS__)) KYMO__LTTNG_DESC_ASIDE_A
#define KYMO__LTTNG_DESC_ASIDE_A_END
#define KYMO__LTTNG_DESC_ASIDE_B_END
#define KYMO__LTTNG_ROOM_A(kind, how, ...) +KYMO__LTTNG_ROOM##kind(__VA_ARGS__) KYMO__LTTNG_ROOM_B
#define KYMO__LTTNG_ROOM_B(kind, how, ...) +KYMO__LTTNG_ROOM##kind(__VA_ARGS__) KYMO__LTTNG_ROOM_A
#define KYMO__LTTNG_ROOM_A_END
#define KYMO__LTTNG_ROOM_B_END
#define KYMO__LTTNG_PIECES_A(kind, how, ...) +KYMO__LTTNG_PIECES##kind KYMO__LTTNG_IF_ASIDE##how(+1, ) KYMO__LTTNG_PIECES_B
#define KYMO__LTTNG_PIECES_B(kind, how, ...) +KYMO__LTTNG_PIECES##kind KYMO__LTTNG_IF_ASIDE##how(+1, ) KYMO__LTTNG_PIECES_A
#define KYMO__LTTNG_PIECES_A_END
#define KYMO__LTTNG_PIECES_B_END
#define KYMO__LTTNG_PUT_A(kind, how, ...) KYMO__LTTNG_IF_REC##how(KYMO__LTTNG_PUT##kind, (__VA_ARGS__)) KYMO__LTTNG_PUT_B
#define KYMO__LTTNG_PUT_B(kind, how, ...) KYMO__LTTNG_IF_REC##how(KYMO__LTTNG_PUT##kind, (__VA_ARGS__)) KYMO__LTTNG_PUT_A
#define KYMO__LTTNG_PUT_A_END
#define KYMO__LTTNG_PUT_B_END
#define KYMO__LTTNG_PUT_ASIDE_A(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(KYMO__LTTNG_PUT##kind, (__VA_ARGS__)) KYMO__LTTNG_PUT_ASIDE_B
#define KYMO__LTTNG_PUT_ASIDE_B(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(KYMO__LTTNG_PUT##kind, (__VA_ARGS__)) KYMO__LTTNG_PUT_ASIDE_A
#define KYMO__LTTNG_PUT_ASIDE_A_END
#define KYMO__LTTNG_PUT_ASIDE_B_END
#define KYMO__LTTNG_ANY_ASIDE_A(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(|| 1, ) KYMO__LTTNG_ANY_ASIDE_B
#define KYMO__LTTNG_ANY_ASIDE_B(kind, how, ...) KYMO__LTTNG_IF_ASIDE##how(|| 1, ) KYMO__LTTNG_ANY_ASIDE_A
#define KYMO__LTTNG_ANY_ASIDE_A_END
#define KYMO__LTTNG_ANY_ASIDE_B_END

#define KYMO__LTTNG_IF_REC_REC(op, args) op args
#define KYMO__LTTNG_IF_REC_ASIDE(op, args)
#define KYMO__LTTNG_IF_ASIDE_ASIDE(op, args) op args
#define KYMO__LTTNG_IF_ASIDE_REC(op, args)

#define KYMO__LTTNG_KIND(type) (KYMO__LTTNG_IS_SIGNED(type) ? KYMO_FIELD_INT : KYMO_FIELD_UINT)
#define KYMO__LTTNG_PUT_VALUE(type, src) __extension__({ \
		type kymo__value = (type)(src); \
		memcpy(kymo__c.p, &kymo__value, sizeof(kymo__value)); \
		kymo__c.p += sizeof(kymo__value); \
		(void)0; \
	}),

#define KYMO__LTTNG_FIELD_INTEGER(aside, type, item, src, flags) \
	{KYMO__LTTNG_KIND(type), 0, (uint8_t)sizeof(type), (flags) | aside, 0, #item, NULL},
#define KYMO__LTTNG_ROOM_INTEGER(type, item, src, flags) sizeof(type)
#define KYMO__LTTNG_PIECES_INTEGER 0
#define KYMO__LTTNG_PUT_INTEGER(type, item, src, flags) KYMO__LTTNG_PUT_VALUE(type, src)

#define KYMO__LTTNG_FIELD_FLOAT(aside, type, item, src) \
	{KYMO_FIELD_FLOAT, 0, (uint8_t)sizeof(type), aside, 0, #item, NULL},
#define KYMO__LTTNG_ROOM_FLOAT(type, item, src) sizeof(type)
#define KYMO__LTTNG_PIECES_FLOAT 0
#define KYMO__LTTNG_PUT_FLOAT(type, item, src) KYMO__LTTNG_PUT_VALUE(type, src)

#define KYMO__LTTNG_FIELD_ENUM(aside, provider, name, type, item, src) \
	{KYMO_FIELD_ENUM, 0, (uint8_t)sizeof(type), (KYMO__LTTNG_IS_SIGNED(type) ? KYMO_FIELD_SIGNED : 0) | aside, 0, \
		#item, &kymo__lttng_enum_##provider##___##name},
#define KYMO__LTTNG_ROOM_ENUM(provider, name, type, item, src) sizeof(type)
#define KYMO__LTTNG_PIECES_ENUM 0
#define KYMO__LTTNG_PUT_ENUM(provider, name, type, item, src) KYMO__LTTNG_PUT_VALUE(type, src)

#define KYMO__LTTNG_FIELD_STRING(aside, item, src) {KYMO_FIELD_STRING, 0, 1, aside, 0, #item, NULL},
#define KYMO__LTTNG_ROOM_STRING(item, src) KYMO__INLINE_MAX + 1
#define KYMO__LTTNG_PIECES_STRING 2
#define KYMO__LTTNG_PUT_STRING(item, src) kymo__put_string(&kymo__c, (src), KYMO__INLINE_MAX),

#define KYMO__LTTNG_FIELD_ARRAY(aside, type, item, src, n, flags) \
	{KYMO_FIELD_ARRAY, KYMO__LTTNG_KIND(type), (uint8_t)sizeof(type), (flags) | aside, (n), #item, NULL},
#define KYMO__LTTNG_ROOM_ARRAY(type, item, src, n, flags) KYMO__INLINE((n) * sizeof(type))
#define KYMO__LTTNG_PIECES_ARRAY 2
#define KYMO__LTTNG_PUT_ARRAY(type, item, src, n, flags) kymo__put_bytes(&kymo__c, kymo__lttng_bytes(src), (n) * sizeof(type)),

#define KYMO__LTTNG_FIELD_SEQUENCE(aside, type, item, src, n, flags) \
	{KYMO_FIELD_SEQUENCE, KYMO__LTTNG_KIND(type), (uint8_t)sizeof(type), (flags) | aside, 0, #item, NULL},
#define KYMO__LTTNG_ROOM_SEQUENCE(type, item, src, n, flags) 4 + KYMO__INLINE_MAX
#define KYMO__LTTNG_PIECES_SEQUENCE 2
#define KYMO__LTTNG_PUT_SEQUENCE(type, item, src, n, flags) kymo__put_sequence(&kymo__c, kymo__lttng_bytes(src), (size_t)(n), sizeof(type)),

#define KYMO__LTTNG_FIELD_TEXT(aside, item, src, n) {KYMO_FIELD_TEXT, 0, 1, aside, (n), #item, NULL},
#define KYMO__LTTNG_ROOM_TEXT(item, src, n) ((n) <= KYMO__INLINE_MAX ? (n) : 2 * KYMO__INLINE_MAX)
#define KYMO__LTTNG_PIECES_TEXT 2 + KYMO__LTTNG_ZEROS_PIECES
#define KYMO__LTTNG_PUT_TEXT(item, src, n) kymo__lttng_put_text(&kymo__c, kymo__lttng_bytes(src), (n)),

#define KYMO__LTTNG_FIELD_TEXT_SEQUENCE(aside, item, src, n) {KYMO_FIELD_TEXT_SEQUENCE, 0, 1, aside, 0, #item, NULL},
#define KYMO__LTTNG_ROOM_TEXT_SEQUENCE(item, src, n) 4 + 2 * KYMO__INLINE_MAX
#define KYMO__LTTNG_PIECES_TEXT_SEQUENCE 2 + KYMO__LTTNG_ZEROS_PIECES
#define KYMO__LTTNG_PUT_TEXT_SEQUENCE(item, src, n) kymo__lttng_put_text_sequence(&kymo__c, kymo__lttng_bytes(src), (size_t)(n)),

/* --- enumerations, classes, events --- */

/* The last label is one too many: there may be no other label. */
#define KYMO__LTTNG_ENUM(provider, name, values) \
	static const struct kymo_enum_label kymo__lttng_labels_##provider##___##name[] = {KYMO__UNWRAP(values) {NULL, 0, 0}}; \
	static const struct kymo_enum_type kymo__lttng_enum_##provider##___##name __attribute__((__unused__)) = { \
		#provider "_" #name, kymo__lttng_labels_##provider##___##name, \
		(uint32_t)(sizeof(kymo__lttng_labels_##provider##___##name) / sizeof(struct kymo_enum_label) - 1), 0};

/* A class is a table of fields and a function that records an event of it. */
#define KYMO__LTTNG_CLASS(provider, cls, args, fields) \
	static const struct kymo_field kymo__lttng_fields_##provider##___##cls[] __attribute__((__unused__)) = { \
		KYMO__LTTNG_EACH(DESC, fields) KYMO__LTTNG_EACH(DESC_ASIDE, fields) KYMO__NO_FIELD}; \
	static KYMO__QUIET __attribute__((__unused__)) void kymo__lttng_record_##provider##___##cls( \
		KYMO__LTTNG_ARGS(PROTO_MORE, args) const struct kymo_event *kymo__ev) \
	{ \
		KYMO__BUFFERS(KYMO__LTTNG_EACH(ROOM, fields), KYMO__LTTNG_EACH(PIECES, fields)) \
		size_t kymo__first = 0; \
		KYMO__LTTNG_EACH(PUT, fields) \
		(0 KYMO__LTTNG_EACH(ANY_ASIDE, fields)) && kymo__lttng_put_aside(kymo__ev, &kymo__c, &kymo__first) \
			? (KYMO__LTTNG_EACH(PUT_ASIDE, fields) kymo__lttng_close_aside(&kymo__c, kymo__first)) : (void)0, \
		kymo__hand_over(kymo__ev, &kymo__c, kymo__room, sizeof(kymo__room) - KYMO_SCRATCH_SLACK, KYMO__LIST_SIZE > 1); \
	}
/* With more arguments after it. */
#define KYMO__LTTNG_PROTO_MORE(type, name) KYMO__LTTNG_PROTO(type, name)
#define KYMO__LTTNG_PROTO_MORE_LAST(type, name) KYMO__LTTNG_PROTO(type, name),
#define KYMO__LTTNG_NO_PROTO_MORE
#define KYMO__LTTNG_VALUE_MORE(type, name) name
#define KYMO__LTTNG_VALUE_MORE_LAST(type, name) name,
#define KYMO__LTTNG_NO_VALUE_MORE

/*
 * C++ lets instances have arguments of other types than their class: as in LTTng, these are not
 * recorded.
 */
#ifdef __cplusplus
#define KYMO__LTTNG_OTHER_ARGS(provider, cls) \
	extern "C++" { template <typename... kymo__types> static void kymo__lttng_record_##provider##___##cls(kymo__types...) {} }
#else
#define KYMO__LTTNG_OTHER_ARGS(provider, cls)
#endif

#define KYMO__LTTNG_INSTANCE(cls_provider, cls, provider, name, args) \
	lttng_ust_static_assert(sizeof(#provider) + sizeof(#name) <= LTTNG_UST_TRACEPOINT_NAME_LEN_MAX, \
		"Tracepoint name length is too long", Tracepoint_name_length_is_too_long); \
	KYMO__C_BEGIN \
	static int kymo__lttng_any_level_##provider##___##name __attribute__((__weakref__("kymo__lttng_level_" #provider "___" #name))); \
	static char *kymo__lttng_any_uri_##provider##___##name __attribute__((__weakref__("kymo__lttng_uri_" #provider "___" #name))); \
	KYMO__C_END \
	static KYMO__QUIET void kymo__lttng_probe_##provider##___##name(KYMO__LTTNG_ARGS(PROTO, args)); \
	static struct kymo_probe_state kymo__lttng_state_##provider##___##name = { \
		{0, 0, NULL, NULL, NULL, NULL, NULL}, KYMO__LTTNG_SIGNATURE(args), NULL}; \
	static const struct kymo_probe_event kymo__lttng_event_##provider##___##name = { \
		{(uint32_t)sizeof(struct kymo_probe_event), KYMO_EVENT_PLAIN, KYMO_DEBUG_LINE, #provider, #name, \
			kymo__lttng_fields_##cls_provider##___##cls, &kymo__lttng_state_##provider##___##name.state, \
			__FILE__, __LINE__, KYMO_EVENT_CHAINED}, \
		(void (*)(void))kymo__lttng_probe_##provider##___##name, \
		&kymo__lttng_any_level_##provider##___##name, (const char *const *)&kymo__lttng_any_uri_##provider##___##name}; \
	static const struct kymo_event *kymo__lttng_entry_##provider##___##name \
		KYMO__IN_LIST = &kymo__lttng_event_##provider##___##name.event; \
	static KYMO__QUIET KYMO__CALLS_OTHERS void kymo__lttng_probe_##provider##___##name(KYMO__LTTNG_ARGS(PROTO, args)) \
	{ \
		union { void *kymo__address; void (*kymo__probe)(KYMO__LTTNG_ARGS(TYPE, args)); } kymo__next; \
		kymo__lttng_record_##cls_provider##___##cls( \
			KYMO__LTTNG_ARGS(VALUE_MORE, args) &kymo__lttng_event_##provider##___##name.event); \
		kymo__next.kymo__address = __atomic_load_n(&kymo__lttng_state_##provider##___##name.next, __ATOMIC_RELAXED); \
		if (kymo__next.kymo__address) \
			kymo__next.kymo__probe(KYMO__LTTNG_ARGS(VALUE, args)); \
	}

/*
 * An event may have one or not. Events refer to them by weakref: a weak declaration would have to
 * be hidden, and gold gives an undefined symbol that is hidden the address of the object, not 0.
 */
#define KYMO__LTTNG_LOGLEVEL(provider, name, level) \
	KYMO__C_BEGIN \
	extern __attribute__((__visibility__("hidden"))) const int kymo__lttng_level_##provider##___##name; \
	const int kymo__lttng_level_##provider##___##name = (level); \
	KYMO__C_END
#define KYMO__LTTNG_MODEL_EMF_URI(provider, name, uri) \
	KYMO__C_BEGIN \
	extern __attribute__((__visibility__("hidden"))) const char *const kymo__lttng_uri_##provider##___##name; \
	const char *const kymo__lttng_uri_##provider##___##name = (uri); \
	KYMO__C_END

/* clang-format on */

/*
 * Hides the content from the compiler, which would warn about text that is shorter than its field.
 */
static inline KYMO__QUIET __attribute__((__unused__)) const void *kymo__lttng_bytes(const void *ptr)
{
	__asm__("" : "+r"(ptr));
	return ptr;
}

/* Padding of texts. Never written; not const, so that it takes no room in the file. */
#define KYMO__LTTNG_ZEROS	 65536u
#define KYMO__LTTNG_ZEROS_PIECES 4
static __attribute__((
	__unused__)) unsigned char kymo__lttng_zeros[KYMO__LTTNG_ZEROS + KYMO_SCRATCH_SLACK];

/*
 * Puts n bytes of text, with NULs behind its end. The bytes behind its end are not read: they may
 * not exist.
 */
static inline KYMO__QUIET __attribute__((__unused__)) void kymo__lttng_put_text(
	struct kymo__cursor *c, const void *text, size_t n)
{
	const void *end = n ? memchr(text, 0, n) : NULL;
	size_t len = end ? (size_t)((const char *)end - (const char *)text) : n;
	size_t part;

	kymo__put_bytes(c, text, len);
	n -= len;
	if (n <= KYMO__INLINE_MAX) {
		memset(c->p, 0, n);
		c->p += n;
	} else if (n > KYMO__LTTNG_ZEROS_PIECES * KYMO__LTTNG_ZEROS) {
		c->len = KYMO__TOO_LARGE;
	} else {
		for (; n; n -= part) {
			part = n < KYMO__LTTNG_ZEROS ? n : KYMO__LTTNG_ZEROS;
			kymo__put_piece(c, kymo__lttng_zeros, part, KYMO_PIECE_SCRATCH);
		}
	}
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__lttng_put_text_sequence(
	struct kymo__cursor *c, const void *text, size_t n)
{
	uint32_t count = (uint32_t)n;

	memcpy(c->p, &count, sizeof(count));
	c->p += sizeof(count);
	if (n <= UINT32_MAX)
		kymo__lttng_put_text(c, text, n);
	else
		c->len = KYMO__TOO_LARGE;
}

/*
 * Called before the excluded fields. Returns whether there are filters. The recorded part ends
 * here; it has *ret_first pieces.
 */
static inline KYMO__QUIET __attribute__((__unused__)) int kymo__lttng_put_aside(
	const struct kymo_event *event, struct kymo__cursor *c, size_t *ret_first)
{
	if (!(__atomic_load_n(&event->state->enabled, __ATOMIC_RELAXED) & KYMO_ENABLED_FILTER))
		return 0;
	kymo__put_piece(c, NULL, 0, 0);
	*ret_first = c->n;
	return 1;
}

/* Called after the excluded fields, which are the pieces from number n on. */
static inline KYMO__QUIET __attribute__((__unused__)) void kymo__lttng_close_aside(
	struct kymo__cursor *c, size_t n)
{
	kymo__put_piece(c, NULL, 0, 0);
	for (; n < c->n; n++)
		c->list[n].flags |= KYMO_PIECE_ASIDE;
}

#endif
