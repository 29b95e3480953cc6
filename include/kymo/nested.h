/* SPDX-License-Identifier: MIT */
/*
 * Fields of an event that have fields themselves: structures, values that may be absent, values of one kind or another.
 *
 *	KYMO_STRUCT(point, const struct point *p, kymo_i32(x, p->x), kymo_i32(y, p->y))
 *	KYMO_VARIANT(reply, const struct reply *r, r->type,
 *		     kymo_case(REPLY_NUMBER, kymo_i64(number, r->number)),
 *		     kymo_case(REPLY_TEXT, kymo_string(text, r->text)))
 *
 *	kymo_event(map, moved, kymo_struct(to, point, &target), kymo_seq_struct(path, point, points, n_points),
 *		   kymo_variant(reply, reply, &r), kymo_optional(i32, height, known ? &height : NULL));
 *
 * KYMO_STRUCT (type, PARAMETER, fields...), at file scope, says which fields a structure has, and how they come from a
 * pointer to what the program has; they are fields of any kind, at most 32. KYMO_VARIANT (type, PARAMETER, value,
 * kymo_case(VALUE, field)...) likewise: the field of the first VALUE that is equal, or none.
 *
 *	kymo_struct (name, type, pointer)	the structure's fields
 *	kymo_array_struct (name, type, pointer, COUNT)	COUNT structures (a constant)
 *	kymo_seq_struct (name, type, pointer, n)	n structures; more than KYMO_SEQ_STRUCTS_MAX: the event counts as discarded
 *	kymo_variant (name, type, pointer)	one of the fields, and before it the name of which, as _name_tag
 *	kymo_array_variant (name, type, pointer, COUNT)	COUNT structures with such a variant, which is called value
 *	kymo_seq_variant (name, type, pointer, n)	n of them, as kymo_seq_struct
 *	kymo_optional (T, name, pointer)	a sequence of one element, or of none where pointer is NULL; T is i8 .. x64, net16 ..,
 *						f32, f64, bool, ptr
 *	kymo_optional_string (name, s)		the same of a text
 *	kymo_optional_struct (name, type, pointer)	and of a structure
 *
 * CTF knows no arrays of variants but in structures; likewise, an array of anything else is one of structures that have it. Structures may be in each other, 8 deep. Filters can ask for what is
 * in structures (`path[1].x`; kymo-filter(7)), not in variants, nor for what stands behind these. An event with
 * kymo_seq_struct takes stack for KYMO_SEQ_STRUCTS_MAX of them: their numbers, and 65 bytes for each text. C11 and C++11.
 */
#ifndef KYMO_NESTED_H
#define KYMO_NESTED_H

#include <kymo/tracepoint.h>

/* clang-format off */

#define KYMO_SEQ_STRUCTS_MAX 64

#define KYMO_STRUCT(type, ...) \
	KYMO__NESTED(STRUCT, type, KYMO__EACH(KYMO__DESC, __VA_ARGS__), KYMO__EACH(KYMO__ROOM, __VA_ARGS__), \
		KYMO__EACH(KYMO__PIECES, __VA_ARGS__), , KYMO__FIRST_TOKEN(__VA_ARGS__, 0)) \
	{ \
		struct kymo__cursor kymo__c = *kymo__at; \
		KYMO__EACH(KYMO__PUT, __VA_ARGS__) \
		*kymo__at = kymo__c; \
	}
#define KYMO_VARIANT(type, parameter, ...) \
	KYMO__NESTED(VARIANT, type, KYMO__EACH(KYMO__CASE_DESC, __VA_ARGS__), +1 KYMO__EACH(KYMO__CASE_ROOM, __VA_ARGS__), \
		+1 KYMO__EACH(KYMO__CASE_PIECES, __VA_ARGS__), KYMO__BOX(type), parameter) \
	{ \
		struct kymo__cursor kymo__c = *kymo__at; \
		const int64_t kymo__value = (int64_t)(KYMO__FIRST_TOKEN(__VA_ARGS__, 0)); \
		uint8_t kymo__n = 0; \
		KYMO__EACH(KYMO__CASE_PUT, __VA_ARGS__) \
		{ kymo__put_u8(&kymo__c, kymo__n); } \
		*kymo__at = kymo__c; \
	}

/*
 * From here on: how it is done; see <kymo/tracepoint.h>. A type is a table of fields, what a value of it may need of the record's
 * room and pieces, and a function that appends one. The table's name tells structures from variants: compilers find what is
 * used as the other.
 */
#define KYMO__NESTED(K, type, fields, room, pieces, more, parameter) \
	static const struct kymo_field kymo__##K##_##type[] __attribute__((unused)) = {fields KYMO__NO_FIELD}; more \
	enum { kymo__room_##type = 0 room, kymo__pieces_##type = 0 pieces }; \
	static inline __attribute__((unused)) void kymo__put_##type##_value(struct kymo__cursor *kymo__at, parameter)

/* A structure that has nothing but the variant: in a record, it is that. */
#define KYMO__BOX(type) \
	static const struct kymo_field kymo__BOX_##type[] __attribute__((unused)) = { \
		{KYMO_FIELD_VARIANT, 0, 0, 0, 0, "value", kymo__VARIANT_##type}, KYMO__NO_FIELD};

#define KYMO__CASE_DESC(option) KYMO__CASE(KYMO__OPTION_DESC, KYMO__F_##option)
#define KYMO__CASE_ROOM(option) KYMO__CASE(KYMO__OPTION_ROOM, KYMO__F_##option)
#define KYMO__CASE_PIECES(option) KYMO__CASE(KYMO__OPTION_PIECES, KYMO__F_##option)
#define KYMO__CASE_PUT(option) KYMO__CASE(KYMO__OPTION_PUT, KYMO__F_##option)
#define KYMO__CASE(op, ...) op(__VA_ARGS__)
#define KYMO__F_kymo_case(value, field) value, field
#define KYMO__OPTION_DESC(value, field) KYMO__DESC(field)
#define KYMO__OPTION_ROOM(value, field) KYMO__ROOM(field)
#define KYMO__OPTION_PIECES(value, field) KYMO__PIECES(field)
#define KYMO__OPTION_PUT(value, field) \
	if (kymo__value == (int64_t)(value)) { kymo__put_u8(&kymo__c, kymo__n); KYMO__PUT(field) } \
	else if (++kymo__n, 0) {} else

#define KYMO__F_kymo_struct(n, type, p) NESTED, (STRUCT, n, type, p)
#define KYMO__F_kymo_variant(n, type, p) NESTED, (VARIANT, n, type, p)
#define KYMO__F_kymo_array_struct(n, type, p, c) STRUCT_ARRAY, (n, type, p, c)
#define KYMO__F_kymo_seq_struct(n, type, p, c) STRUCT_SEQUENCE, (n, type, p, c, KYMO_SEQ_STRUCTS_MAX)
#define KYMO__F_kymo_optional_struct(n, type, p) STRUCT_SEQUENCE, (n, type, p, kymo__p != NULL, 1)
#define KYMO__F_kymo_array_variant(n, type, p, c) VARIANT_ARRAY, (n, type, p, c)
#define KYMO__F_kymo_seq_variant(n, type, p, c) VARIANT_SEQUENCE, (n, type, p, c, KYMO_SEQ_STRUCTS_MAX)
#define KYMO__F_kymo_optional(T, n, p) OPTIONAL, (T, n, p)
#define KYMO__F_kymo_optional_string(n, s) OPTIONAL_STRING, (n, s)

#define KYMO__DESC_NESTED(K, n, type, p) {KYMO_FIELD_##K, 0, 0, 0, 0, KYMO__STRING(n), kymo__##K##_##type},
#define KYMO__ROOM_NESTED(K, n, type, p) +(size_t)kymo__room_##type
#define KYMO__PIECES_NESTED(K, n, type, p) +(size_t)kymo__pieces_##type
#define KYMO__PUT_NESTED(K, n, type, p) kymo__put_##type##_value(&kymo__c, (p));

#define KYMO__DESC_ARRAY_OF(n, type, c) {KYMO_FIELD_ARRAY, KYMO_FIELD_STRUCT, 0, 0, (c), KYMO__STRING(n), kymo__##type},
#define KYMO__DESC_SEQUENCE_OF(n, type) {KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRUCT, 0, 0, 0, KYMO__STRING(n), kymo__##type},

#define KYMO__DESC_STRUCT_ARRAY(n, type, p, c) KYMO__DESC_ARRAY_OF(n, STRUCT_##type, c)
#define KYMO__ROOM_STRUCT_ARRAY(n, type, p, c) +(c) * (size_t)kymo__room_##type
#define KYMO__PIECES_STRUCT_ARRAY(n, type, p, c) +(c) * (size_t)kymo__pieces_##type
#define KYMO__PUT_STRUCT_ARRAY(n, type, p, c) { \
		const __typeof__(&(p)[0]) kymo__p = (p); \
		for (size_t kymo__i = 0; kymo__i < (c); kymo__i++) \
			kymo__put_##type##_value(&kymo__c, kymo__p + kymo__i); \
	}

#define KYMO__DESC_STRUCT_SEQUENCE(n, type, p, c, max) KYMO__DESC_SEQUENCE_OF(n, STRUCT_##type)
#define KYMO__ROOM_STRUCT_SEQUENCE(n, type, p, c, max) +4 + (max) * (size_t)kymo__room_##type
#define KYMO__PIECES_STRUCT_SEQUENCE(n, type, p, c, max) +1 + (max) * (size_t)kymo__pieces_##type
#define KYMO__PUT_STRUCT_SEQUENCE(n, type, p, c, max) { \
		const __typeof__(&(p)[0]) kymo__p = (p); \
		const size_t kymo__count = kymo__put_count(&kymo__c, (c), (max)); \
		for (size_t kymo__i = 0; kymo__i < kymo__count; kymo__i++) \
			kymo__put_##type##_value(&kymo__c, kymo__p + kymo__i); \
	}

#define KYMO__DESC_VARIANT_ARRAY(n, type, p, c) KYMO__DESC_ARRAY_OF(n, BOX_##type, c)
#define KYMO__ROOM_VARIANT_ARRAY KYMO__ROOM_STRUCT_ARRAY
#define KYMO__PIECES_VARIANT_ARRAY KYMO__PIECES_STRUCT_ARRAY
#define KYMO__PUT_VARIANT_ARRAY KYMO__PUT_STRUCT_ARRAY
#define KYMO__DESC_VARIANT_SEQUENCE(n, type, p, c, max) KYMO__DESC_SEQUENCE_OF(n, BOX_##type)
#define KYMO__ROOM_VARIANT_SEQUENCE KYMO__ROOM_STRUCT_SEQUENCE
#define KYMO__PIECES_VARIANT_SEQUENCE KYMO__PIECES_STRUCT_SEQUENCE
#define KYMO__PUT_VARIANT_SEQUENCE KYMO__PUT_STRUCT_SEQUENCE

/* "bool", and what <stdbool.h> may have made of it. */
#define KYMO__KIND_bool KYMO__KIND_truth
#define KYMO__FLAGS_bool KYMO__FLAGS_truth
typedef kymo__truth kymo__bool;
#define KYMO__KIND__Bool KYMO__KIND_truth
#define KYMO__FLAGS__Bool KYMO__FLAGS_truth
typedef kymo__truth kymo___Bool;

#define KYMO__DESC_OPTIONAL(T, n, p) KYMO__DESC_SEQUENCE(T, n, p, 0)
#define KYMO__ROOM_OPTIONAL(T, n, p) +4 + sizeof(kymo__##T)
#define KYMO__PIECES_OPTIONAL(T, n, p) +1
#define KYMO__PUT_OPTIONAL(T, n, p) { \
		const void *kymo__p = (p); \
		kymo__put_sequence(&kymo__c, kymo__p, kymo__p != NULL, sizeof(kymo__##T)); \
	}

#define KYMO__DESC_OPTIONAL_STRING(n, s) KYMO__DESC_STRING_SEQUENCE(n, s, 0)
#define KYMO__ROOM_OPTIONAL_STRING(n, s) +4 KYMO__ROOM_STRING(n, s)
#define KYMO__PIECES_OPTIONAL_STRING(n, s) +2
#define KYMO__PUT_OPTIONAL_STRING(n, s) { \
		const char *kymo__s = (s); \
		kymo__put_string_sequence(&kymo__c, &kymo__s, kymo__s != NULL); \
	}

/* clang-format on */

/* Puts the number of elements; returns how many follow: all, or none of too many. */
static inline __attribute__((unused)) size_t kymo__put_count(
	struct kymo__cursor *c, size_t n, size_t max)
{
	kymo__put_u32(c, (uint32_t)n);
	if (n <= max)
		return n;
	c->len = KYMO__TOO_LARGE;
	return 0;
}

#endif
