/* SPDX-License-Identifier: MIT */
/*
 * Fields of an event that have fields themselves: structures, optional values, variants.
 *
 *	KYMO_STRUCT(point, const struct point *p, kymo_i32(x, p->x), kymo_i32(y, p->y))
 *	KYMO_VARIANT(reply, const struct reply *r, r->type,
 *		     kymo_case(REPLY_NUMBER, kymo_i64(number, r->number)),
 *		     kymo_case(REPLY_TEXT, kymo_string(text, r->text)))
 *
 *	kymo_event(map, moved, kymo_struct(to, point, &target),
 *		   kymo_seq_struct(path, point, points, n_points),
 *		   kymo_variant(reply, reply, &r),
 *		   kymo_optional(i32, height, known ? &height : NULL));
 *
 * KYMO_STRUCT (type, PARAMETER, fields...), at file scope, defines the fields of a structure. The
 * PARAMETER is a pointer to the program's data, or an integer, and the fields' values are computed
 * from it. Fields are of any kind, at most 32.
 *
 * KYMO_VARIANT (type, PARAMETER, value, kymo_case(VALUE, field)...) likewise: it has the field of
 * the first VALUE that is equal, or none.
 *
 *	kymo_struct (name, type, pointer)
 *		the structure's fields
 *	kymo_array_struct (name, type, pointer, COUNT)
 *		COUNT structures (a constant)
 *	kymo_seq_struct (name, type, pointer, n)
 *		n structures; with more than KYMO_SEQ_STRUCTS_MAX the event counts as discarded
 *	kymo_variant (name, type, pointer)
 *		one of the fields, and before it that field's name, as _name_tag
 *	kymo_array_variant (name, type, pointer, COUNT)
 *		COUNT structures with such a variant, which is called value
 *	kymo_seq_variant (name, type, pointer, n)
 *		n of them, as kymo_seq_struct
 *	kymo_optional (T, name, pointer)
 *		a sequence of one element, or of none if pointer is NULL; T is i8 .. x64, net16 ..,
 *		f32, f64, bool, ptr
 *	kymo_optional_string (name, s)
 *		the same for a text
 *	kymo_optional_struct (name, type, pointer)
 *		the same for a structure
 *
 * CTF has arrays of variants only inside structures. To have an array of anything else, make an
 * array of structures with that field, too. Structures may be nested 8 deep. Filters can use fields
 * in structures (`path[1].x`; kymo-filter(7)), but not fields in variants, nor fields behind these.
 * An event with kymo_seq_struct needs stack for KYMO_SEQ_STRUCTS_MAX of them: their numbers, and 65
 * bytes for each text. C11 and C++11.
 */
#ifndef KYMO_NESTED_H
#define KYMO_NESTED_H

#pragma GCC system_header

#include <kymo/tracepoint.h>

/* clang-format off */

#define KYMO_SEQ_STRUCTS_MAX 64

#define KYMO_STRUCT(type, ...) \
	KYMO__NESTED_TYPE(_STRUCT, type, KYMO__EACH(KYMO__DESC, __VA_ARGS__), KYMO__EACH(KYMO__ROOM, __VA_ARGS__), \
		KYMO__EACH(KYMO__PIECES, __VA_ARGS__), , KYMO__FIRST_TOKEN(__VA_ARGS__, 0)) \
		KYMO__EACH(KYMO__PUT, __VA_ARGS__) \
		kymo__value_put(kymo__at, kymo__w, &kymo__c); \
	}
#define KYMO_VARIANT(type, parameter, ...) \
	KYMO__NESTED_TYPE(_VARIANT, type, KYMO__EACH(KYMO__CASE_DESC, __VA_ARGS__), +1 KYMO__EACH(KYMO__CASE_ROOM, __VA_ARGS__), \
		KYMO__EACH(KYMO__CASE_PIECES, __VA_ARGS__), KYMO__BOX(type), parameter) \
		const int64_t kymo__value = (int64_t)(KYMO__FIRST_TOKEN(__VA_ARGS__, 0)); \
		uint8_t kymo__n = 0; \
		(KYMO__EACH(KYMO__CASE_PUT, __VA_ARGS__) kymo__put_u8(&kymo__c, kymo__n)), \
		kymo__value_put(kymo__at, kymo__w, &kymo__c); \
	}

/*
 * From here on: the implementation; see <kymo/detail/fields.h>. A type is a table of fields, the
 * maximum of room and pieces that a value of it needs in the record, and a function that appends
 * one. The name of the table says whether it is a structure or a variant: compilers report a type
 * that is used as the other. Another function, never defined, has the parameter's type.
 */
#define KYMO__NESTED_TYPE(K, type, fields, room, pieces, more, parameter) \
	static const struct kymo_field kymo_##K##_##type[] __attribute__((__unused__)) = {fields KYMO__NO_FIELD}; more \
	enum { kymo__room_##type = 0 room, kymo__pieces_##type = (0 pieces) % KYMO__DEEP }; \
	void kymo__check_##type(parameter); \
	static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_##type##_value( \
		struct kymo__cursor *kymo__at, struct kymo__walk *kymo__w, void *kymo__data) \
	{ \
		KYMO__AS_IN_C(parameter = KYMO__ARGUMENT(type, kymo__data);) \
		struct kymo__cursor kymo__c = *kymo__at;

/* A structure with the variant as its only member: in a record, it has the variant's bytes. */
#define KYMO__BOX(type) \
	static const struct kymo_field kymo__BOX_##type[] __attribute__((__unused__)) = { \
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
	kymo__value == (int64_t)(value) ? (kymo__put_u8(&kymo__c, kymo__n), KYMO__PUT(field) (void)0) \
	: ++kymo__n == 0 ? (void)0 :

#define KYMO__F_kymo_struct(n, type, p) _NESTED, (_STRUCT, n, type, p)
#define KYMO__F_kymo_variant(n, type, p) _NESTED, (_VARIANT, n, type, p)
#define KYMO__F_kymo_array_struct(n, type, p, c) _STRUCT_ARRAY, (n, type, p, c)
#define KYMO__F_kymo_seq_struct(n, type, p, c) _STRUCT_SEQUENCE, (n, type, p, c, KYMO_SEQ_STRUCTS_MAX)
#define KYMO__F_kymo_optional_struct(n, type, p) _OPTIONAL_STRUCT, (n, type, p)
#define KYMO__F_kymo_array_variant(n, type, p, c) _VARIANT_ARRAY, (n, type, p, c)
#define KYMO__F_kymo_seq_variant(n, type, p, c) _VARIANT_SEQUENCE, (n, type, p, c, KYMO_SEQ_STRUCTS_MAX)
#define KYMO__F_kymo_optional(T, n, p) _OPTIONAL, (_##T, n, p)
#define KYMO__F_kymo_optional_string(n, s) _OPTIONAL_STRING, (n, s)

#define KYMO__DESC_NESTED(K, n, type, p) {KYMO_FIELD##K, 0, 0, 0, 0, KYMO__STRING(n), kymo_##K##_##type},
#define KYMO__ROOM_NESTED(K, n, type, p) +(size_t)kymo__room_##type
/*
 * A value without pieces is put at once, others when the record is complete
 * (<kymo/detail/record.h>).
 */
#define KYMO__PIECES_OF(type, c) +(kymo__pieces_##type != 0 ? KYMO__DEEP + 3 + (c) * (size_t)(1 + kymo__pieces_##type) : 0)
#define KYMO__PIECES_NESTED(K, n, type, p) KYMO__PIECES##K##_ITSELF KYMO__PIECES_OF(type, 1)
#define KYMO__PIECES_STRUCT_ITSELF
#define KYMO__PIECES_VARIANT_ITSELF +1 /* its length varies */
#define KYMO__PUT_NESTED(K, n, type, p) \
	kymo__put_values(&kymo__c, kymo__put_##type##_value, kymo__pieces_##type, KYMO__CHECKED(type, p), 1, 0),

#define KYMO__DESC_ARRAY_OF(n, type, c) {KYMO_FIELD_ARRAY, KYMO_FIELD_STRUCT, 0, 0, (c), KYMO__STRING(n), kymo_##type},
#define KYMO__DESC_SEQUENCE_OF(n, type) {KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRUCT, 0, 0, 0, KYMO__STRING(n), kymo_##type},

#define KYMO__DESC_STRUCT_ARRAY(n, type, p, c) KYMO__DESC_ARRAY_OF(n, _STRUCT_##type, c)
#define KYMO__ROOM_STRUCT_ARRAY(n, type, p, c) +(c) * (size_t)kymo__room_##type
#define KYMO__PIECES_STRUCT_ARRAY(n, type, p, c) KYMO__PIECES_OF(type, c)
#define KYMO__PUT_STRUCT_ARRAY(n, type, p, c) KYMO__PUT_VALUES(type, p, c)

#define KYMO__DESC_STRUCT_SEQUENCE(n, type, p, c, max) KYMO__DESC_SEQUENCE_OF(n, _STRUCT_##type)
#define KYMO__ROOM_STRUCT_SEQUENCE(n, type, p, c, max) +4 + (max) * (size_t)kymo__room_##type
#define KYMO__PIECES_STRUCT_SEQUENCE(n, type, p, c, max) +1 KYMO__PIECES_OF(type, max)
#define KYMO__PUT_STRUCT_SEQUENCE(n, type, p, c, max) KYMO__PUT_VALUES(type, p, kymo__put_count(&kymo__c, (c), (max)))

#define KYMO__DESC_OPTIONAL_STRUCT(n, type, p) KYMO__DESC_SEQUENCE_OF(n, _STRUCT_##type)
#define KYMO__ROOM_OPTIONAL_STRUCT(n, type, p) +4 + (size_t)kymo__room_##type
#define KYMO__PIECES_OPTIONAL_STRUCT(n, type, p) +1 KYMO__PIECES_OF(type, 1)
#define KYMO__PUT_OPTIONAL_STRUCT(n, type, p) \
	kymo__put_optional_value(&kymo__c, kymo__put_##type##_value, kymo__pieces_##type, KYMO__CHECKED(type, p)),

#define KYMO__DESC_VARIANT_ARRAY(n, type, p, c) KYMO__DESC_ARRAY_OF(n, _BOX_##type, c)
#define KYMO__ROOM_VARIANT_ARRAY KYMO__ROOM_STRUCT_ARRAY
#define KYMO__PIECES_VARIANT_ARRAY KYMO__PIECES_STRUCT_ARRAY
#define KYMO__PUT_VARIANT_ARRAY KYMO__PUT_STRUCT_ARRAY
#define KYMO__DESC_VARIANT_SEQUENCE(n, type, p, c, max) KYMO__DESC_SEQUENCE_OF(n, _BOX_##type)
#define KYMO__ROOM_VARIANT_SEQUENCE KYMO__ROOM_STRUCT_SEQUENCE
#define KYMO__PIECES_VARIANT_SEQUENCE KYMO__PIECES_STRUCT_SEQUENCE
#define KYMO__PUT_VARIANT_SEQUENCE KYMO__PUT_STRUCT_SEQUENCE

/* "bool", and its replacement by <stdbool.h>. */
#define KYMO__KIND_bool KYMO__KIND_truth
#define KYMO__FLAGS_bool KYMO__FLAGS_truth
typedef kymo__truth kymo__bool;
#define KYMO__KIND__Bool KYMO__KIND_truth
#define KYMO__FLAGS__Bool KYMO__FLAGS_truth
typedef kymo__truth kymo___Bool;

#define KYMO__DESC_OPTIONAL(T, n, p) KYMO__DESC_SEQUENCE(T, n, p, 0)
#define KYMO__ROOM_OPTIONAL(T, n, p) +4 + sizeof(kymo_##T)
#define KYMO__PIECES_OPTIONAL(T, n, p) +1
#define KYMO__PUT_OPTIONAL(T, n, p) kymo__put_optional(&kymo__c, (p), sizeof(kymo_##T)),

#define KYMO__DESC_OPTIONAL_STRING(n, s) KYMO__DESC_STRING_SEQUENCE(n, s, 0)
#define KYMO__ROOM_OPTIONAL_STRING(n, s) +4 KYMO__ROOM_STRING(n, s)
#define KYMO__PIECES_OPTIONAL_STRING(n, s) +2
#define KYMO__PUT_OPTIONAL_STRING(n, s) kymo__put_optional_string(&kymo__c, (s)),

#ifdef __cplusplus
#define KYMO__ARGUMENT(type, data) kymo__argument{data}
#define KYMO__AS_IN_C(...) __VA_ARGS__
#define KYMO__PARAMETER(type) static_cast<__typeof__(&kymo__check_##type)>(NULL)
#define KYMO__CHECKED(type, p) kymo__checked(KYMO__PARAMETER(type), (p))
#define KYMO__PUT_VALUES(type, p, c) \
	kymo__put_array(&kymo__c, kymo__put_##type##_value, kymo__pieces_##type, KYMO__PARAMETER(type), (p), (c)),
#else
/* Without the warning of -Wc++-compat about a pointer that comes from void *. */
#define KYMO__AS_IN_C(...) \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wc++-compat\"") __VA_ARGS__ _Pragma("GCC diagnostic pop")
#define KYMO__ARGUMENT(type, data) \
	_Generic(kymo__check_##type, KYMO__NUMBER(char, data), KYMO__NUMBER(signed char, data), KYMO__NUMBER(unsigned char, data), \
		KYMO__NUMBER(short, data), KYMO__NUMBER(unsigned short, data), KYMO__NUMBER(int, data), KYMO__NUMBER(unsigned, data), \
		KYMO__NUMBER(long, data), KYMO__NUMBER(unsigned long, data), KYMO__NUMBER(_Bool, data), default: data)
#define KYMO__NUMBER(type, data) void (*)(type): (type)(uintptr_t)(data)
#define KYMO__CHECKED(type, p) ((void)sizeof((kymo__check_##type(p), 0)), (const void *)(uintptr_t)(p))
#define KYMO__PUT_VALUES(type, p, c) \
	kymo__put_values(&kymo__c, kymo__put_##type##_value, kymo__pieces_##type, KYMO__CHECKED(type, p), (c), sizeof((p)[0])),
#endif

/* clang-format on */

/* Puts the number of elements. Returns how many follow: all, or none if there are too many. */
static inline KYMO__QUIET __attribute__((__unused__)) size_t kymo__put_count(
	struct kymo__cursor *c, size_t n, size_t max)
{
	kymo__put_u32(c, (uint32_t)n);
	if (n <= max)
		return n;
	c->len = KYMO__TOO_LARGE;
	return 0;
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_optional(
	struct kymo__cursor *c, const void *p, size_t size)
{
	kymo__put_sequence(c, p, p != NULL, size);
}

static inline KYMO__QUIET __attribute__((__unused__)) void kymo__put_optional_string(
	struct kymo__cursor *c, const char *s)
{
	kymo__put_u32(c, s != NULL);
	if (s)
		kymo__put_string(c, s, KYMO__INLINE_MAX);
}

/* Ends a function that puts a value: at once, or as a part of a record that is complete. */
static inline KYMO__QUIET __attribute__((__always_inline__, __unused__)) void kymo__value_put(
	struct kymo__cursor *at, struct kymo__walk *walk, struct kymo__cursor *c)
{
	if (walk)
		kymo__descend(walk, c);
	else
		*at = *c;
}

/* Puts n values, one every `size` bytes. pieces: a constant, 0 if the values have none. */
static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__always_inline__, __unused__)) void
kymo__put_values(struct kymo__cursor *c, kymo__value_fn put, int pieces, const void *p, size_t n,
	size_t size)
{
	struct kymo_piece *entry;
	size_t i;

	if (!pieces) {
		for (i = 0; i < n; i++)
			(put)(c, NULL, (char *)(uintptr_t)p + i * size);
		return;
	}
	kymo__put_piece(c, NULL, 0, 0);
	entry = c->list + c->n;
	entry[0].ptr = p;
	entry[0].len = (uint32_t)n;
	entry[0].flags = KYMO__NESTED;
	memcpy(&entry[1].ptr, &put, sizeof(put));
	entry[1].len = (uint32_t)size;
	entry[1].flags = 0;
	c->n += 2;
}

static inline KYMO__QUIET __attribute__((__always_inline__, __unused__)) void
kymo__put_optional_value(struct kymo__cursor *c, kymo__value_fn put, int pieces, const void *p)
{
	kymo__put_u32(c, p != NULL);
	kymo__put_values(c, put, pieces, p, p != NULL, 0);
}

#ifdef __cplusplus
extern "C++" {
/* The pointer or the number that is the parameter's type. */
struct kymo__argument {
	void *data;
	template <typename kymo__T> KYMO__QUIET operator kymo__T() const
	{
		return (kymo__T)(uintptr_t)data;
	}
};

template <typename kymo__P>
static inline KYMO__QUIET const void *kymo__checked(
	void (*)(kymo__P), typename kymo__same<kymo__P>::type p)
{
	return (const void *)(uintptr_t)p;
}

template <typename kymo__P, typename kymo__T>
static inline KYMO__QUIET __attribute__((__always_inline__)) void kymo__put_array(
	kymo__cursor *c, kymo__value_fn put, int pieces, void (*)(kymo__P), kymo__T *p, size_t n)
{
	kymo__P first = p;

	kymo__put_values(c, put, pieces, first, n, sizeof(*p));
}
}
#endif

#endif
