/* SPDX-License-Identifier: MIT */
/*
 * How <kymo/tracepoint.h> works: the macros. Names with two underscores are not for programs.
 *
 * A field is written kymo_u64(name, value), where kymo_u64 is not a macro. The prefix KYMO__F_
 * turns it into `KIND, (arguments)`. An operation turns that into the macro of this operation and
 * kind:
 *
 *	DESC	the field's entry in the static table of fields
 *	ROOM	the number of bytes that the field may need in the scratch buffer
 *	PIECES	the number of entries that the field may need in the list of pieces
 *	PUT	an expression, and a comma, that appends the field's value to the record
 *
 * The PUTs of a record and the call that hands it over are one full expression. A long value is not
 * copied before that call, and the temporaries of C++ that may hold it live until then.
 */
#ifndef KYMO_DETAIL_FIELDS_H
#define KYMO_DETAIL_FIELDS_H

#pragma GCC system_header

#include <kymo/types.h>

/* clang-format off */

#ifdef __cplusplus
#define KYMO__C_BEGIN extern "C" {
#define KYMO__C_END }
#else
#define KYMO__C_BEGIN
#define KYMO__C_END
#endif

/*
 * A name as a string. If it is no identifier, it does not paste, or remains as the_name_is_missing;
 * compilers show these texts.
 */
#define KYMO__STRING(name) \
	KYMO__NOTHING(names_are_not_quoted_##name) KYMO__SECOND(KYMO__NAME_##name) #name
#define KYMO__NAME_ , the_name_is_missing
#define KYMO__SECOND(...) KYMO__SECOND_(__VA_ARGS__, , )
#define KYMO__SECOND_(first, second, ...) second
#define KYMO__NOTHING(...)
#define KYMO__FIRST(first, ...) KYMO__STRING(first)
#define KYMO__FIRST_TOKEN(first, ...) first
#define KYMO__CAT(a, b) a##b
#define KYMO__APPLY_CAT(a, b) KYMO__CAT(a, b)
#define KYMO__IS_ENABLED(state) \
	__builtin_expect(__atomic_load_n(&(state).enabled, __ATOMIC_RELAXED) != 0, 0)

/* Number of arguments, 1 .. 33; and whether there is _ONE or _MORE. */
#define KYMO__COUNT(...) KYMO__COUNT_(__VA_ARGS__, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define KYMO__COUNT_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, n, ...) n
#define KYMO__MANY(...) KYMO__COUNT_(__VA_ARGS__, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _MORE, _ONE, 0)

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

/*
 * Another name than that of a kind of field remains in the name that compilers do not know:
 * KYMO__DESCKYMO__F_kymo_integer.
 *
 * Words that are only pasted to names (_SCALAR, _i32, _MORE) begin with an underscore: one that is
 * a macro of the program's (STRING, u8) would be expanded on its way.
 */
#define KYMO__OP(op, ...) KYMO__OP_(op, __VA_ARGS__, , )
#define KYMO__OP_(op, kind, args, ...) op##kind args
#define KYMO__DESC(field) KYMO__OP(KYMO__DESC, KYMO__F_##field)
#define KYMO__ROOM(field) KYMO__OP(KYMO__ROOM, KYMO__F_##field)
#define KYMO__PIECES(field) KYMO__OP(KYMO__PIECES, KYMO__F_##field)
#define KYMO__PUT(field) KYMO__OP(KYMO__PUT, KYMO__F_##field)
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

#define KYMO__F_kymo_i8(n, v) _SCALAR, (_i8, n, v)
#define KYMO__F_kymo_array_i8(n, p, c) _ARRAY, (_i8, n, p, c)
#define KYMO__F_kymo_seq_i8(n, p, c) _SEQUENCE, (_i8, n, p, c)
#define KYMO__F_kymo_i16(n, v) _SCALAR, (_i16, n, v)
#define KYMO__F_kymo_array_i16(n, p, c) _ARRAY, (_i16, n, p, c)
#define KYMO__F_kymo_seq_i16(n, p, c) _SEQUENCE, (_i16, n, p, c)
#define KYMO__F_kymo_i32(n, v) _SCALAR, (_i32, n, v)
#define KYMO__F_kymo_array_i32(n, p, c) _ARRAY, (_i32, n, p, c)
#define KYMO__F_kymo_seq_i32(n, p, c) _SEQUENCE, (_i32, n, p, c)
#define KYMO__F_kymo_i64(n, v) _SCALAR, (_i64, n, v)
#define KYMO__F_kymo_array_i64(n, p, c) _ARRAY, (_i64, n, p, c)
#define KYMO__F_kymo_seq_i64(n, p, c) _SEQUENCE, (_i64, n, p, c)
#define KYMO__F_kymo_u8(n, v) _SCALAR, (_u8, n, v)
#define KYMO__F_kymo_array_u8(n, p, c) _ARRAY, (_u8, n, p, c)
#define KYMO__F_kymo_seq_u8(n, p, c) _SEQUENCE, (_u8, n, p, c)
#define KYMO__F_kymo_u16(n, v) _SCALAR, (_u16, n, v)
#define KYMO__F_kymo_array_u16(n, p, c) _ARRAY, (_u16, n, p, c)
#define KYMO__F_kymo_seq_u16(n, p, c) _SEQUENCE, (_u16, n, p, c)
#define KYMO__F_kymo_u32(n, v) _SCALAR, (_u32, n, v)
#define KYMO__F_kymo_array_u32(n, p, c) _ARRAY, (_u32, n, p, c)
#define KYMO__F_kymo_seq_u32(n, p, c) _SEQUENCE, (_u32, n, p, c)
#define KYMO__F_kymo_u64(n, v) _SCALAR, (_u64, n, v)
#define KYMO__F_kymo_array_u64(n, p, c) _ARRAY, (_u64, n, p, c)
#define KYMO__F_kymo_seq_u64(n, p, c) _SEQUENCE, (_u64, n, p, c)
#define KYMO__F_kymo_x8(n, v) _SCALAR, (_x8, n, v)
#define KYMO__F_kymo_array_x8(n, p, c) _ARRAY, (_x8, n, p, c)
#define KYMO__F_kymo_seq_x8(n, p, c) _SEQUENCE, (_x8, n, p, c)
#define KYMO__F_kymo_x16(n, v) _SCALAR, (_x16, n, v)
#define KYMO__F_kymo_array_x16(n, p, c) _ARRAY, (_x16, n, p, c)
#define KYMO__F_kymo_seq_x16(n, p, c) _SEQUENCE, (_x16, n, p, c)
#define KYMO__F_kymo_x32(n, v) _SCALAR, (_x32, n, v)
#define KYMO__F_kymo_array_x32(n, p, c) _ARRAY, (_x32, n, p, c)
#define KYMO__F_kymo_seq_x32(n, p, c) _SEQUENCE, (_x32, n, p, c)
#define KYMO__F_kymo_x64(n, v) _SCALAR, (_x64, n, v)
#define KYMO__F_kymo_array_x64(n, p, c) _ARRAY, (_x64, n, p, c)
#define KYMO__F_kymo_seq_x64(n, p, c) _SEQUENCE, (_x64, n, p, c)
#define KYMO__F_kymo_net16(n, v) _SCALAR, (_net16, n, v)
#define KYMO__F_kymo_array_net16(n, p, c) _ARRAY, (_net16, n, p, c)
#define KYMO__F_kymo_seq_net16(n, p, c) _SEQUENCE, (_net16, n, p, c)
#define KYMO__F_kymo_net32(n, v) _SCALAR, (_net32, n, v)
#define KYMO__F_kymo_array_net32(n, p, c) _ARRAY, (_net32, n, p, c)
#define KYMO__F_kymo_seq_net32(n, p, c) _SEQUENCE, (_net32, n, p, c)
#define KYMO__F_kymo_net64(n, v) _SCALAR, (_net64, n, v)
#define KYMO__F_kymo_array_net64(n, p, c) _ARRAY, (_net64, n, p, c)
#define KYMO__F_kymo_seq_net64(n, p, c) _SEQUENCE, (_net64, n, p, c)
#define KYMO__F_kymo_netx16(n, v) _SCALAR, (_netx16, n, v)
#define KYMO__F_kymo_array_netx16(n, p, c) _ARRAY, (_netx16, n, p, c)
#define KYMO__F_kymo_seq_netx16(n, p, c) _SEQUENCE, (_netx16, n, p, c)
#define KYMO__F_kymo_netx32(n, v) _SCALAR, (_netx32, n, v)
#define KYMO__F_kymo_array_netx32(n, p, c) _ARRAY, (_netx32, n, p, c)
#define KYMO__F_kymo_seq_netx32(n, p, c) _SEQUENCE, (_netx32, n, p, c)
#define KYMO__F_kymo_netx64(n, v) _SCALAR, (_netx64, n, v)
#define KYMO__F_kymo_array_netx64(n, p, c) _ARRAY, (_netx64, n, p, c)
#define KYMO__F_kymo_seq_netx64(n, p, c) _SEQUENCE, (_netx64, n, p, c)
#define KYMO__F_kymo_f32(n, v) _SCALAR, (_f32, n, v)
#define KYMO__F_kymo_array_f32(n, p, c) _ARRAY, (_f32, n, p, c)
#define KYMO__F_kymo_seq_f32(n, p, c) _SEQUENCE, (_f32, n, p, c)
#define KYMO__F_kymo_f64(n, v) _SCALAR, (_f64, n, v)
#define KYMO__F_kymo_array_f64(n, p, c) _ARRAY, (_f64, n, p, c)
#define KYMO__F_kymo_seq_f64(n, p, c) _SEQUENCE, (_f64, n, p, c)
#define KYMO__F_kymo_bool(n, v) _SCALAR, (_truth, n, v)
#define KYMO__F_kymo_array_bool(n, p, c) _ARRAY, (_truth, n, p, c)
#define KYMO__F_kymo_seq_bool(n, p, c) _SEQUENCE, (_truth, n, p, c)
#define KYMO__F_kymo_ptr(n, v) _SCALAR, (_ptr, n, v)
#define KYMO__F_kymo_array_ptr(n, p, c) _ARRAY, (_ptr, n, p, c)
#define KYMO__F_kymo_seq_ptr(n, p, c) _SEQUENCE, (_ptr, n, p, c)
#define KYMO__F_kymo_enum_i8(n, e, v) _ENUM, (_i8, n, e, v)
#define KYMO__F_kymo_enum_i16(n, e, v) _ENUM, (_i16, n, e, v)
#define KYMO__F_kymo_enum_i32(n, e, v) _ENUM, (_i32, n, e, v)
#define KYMO__F_kymo_enum_i64(n, e, v) _ENUM, (_i64, n, e, v)
#define KYMO__F_kymo_enum_u8(n, e, v) _ENUM, (_u8, n, e, v)
#define KYMO__F_kymo_enum_u16(n, e, v) _ENUM, (_u16, n, e, v)
#define KYMO__F_kymo_enum_u32(n, e, v) _ENUM, (_u32, n, e, v)
#define KYMO__F_kymo_enum_u64(n, e, v) _ENUM, (_u64, n, e, v)
#define KYMO__VALUE_i8(v) KYMO__FIT(_i8, v)
#define KYMO__VALUE_i16(v) KYMO__FIT(_i16, v)
#define KYMO__VALUE_i32(v) KYMO__FIT(_i32, v)
#define KYMO__VALUE_i64(v) KYMO__FIT(_i64, v)
#define KYMO__VALUE_u8(v) KYMO__FIT(_u8, v)
#define KYMO__VALUE_u16(v) KYMO__FIT(_u16, v)
#define KYMO__VALUE_u32(v) KYMO__FIT(_u32, v)
#define KYMO__VALUE_u64(v) KYMO__FIT(_u64, v)
#define KYMO__VALUE_x8(v) KYMO__FIT(_x8, v)
#define KYMO__VALUE_x16(v) KYMO__FIT(_x16, v)
#define KYMO__VALUE_x32(v) KYMO__FIT(_x32, v)
#define KYMO__VALUE_x64(v) KYMO__FIT(_x64, v)
#define KYMO__VALUE_net16(v) KYMO__FIT(_net16, v)
#define KYMO__VALUE_net32(v) KYMO__FIT(_net32, v)
#define KYMO__VALUE_net64(v) KYMO__FIT(_net64, v)
#define KYMO__VALUE_netx16(v) KYMO__FIT(_netx16, v)
#define KYMO__VALUE_netx32(v) KYMO__FIT(_netx32, v)
#define KYMO__VALUE_netx64(v) KYMO__FIT(_netx64, v)
#define KYMO__VALUE_f32(v) (v)
#define KYMO__VALUE_f64(v) (v)
#define KYMO__VALUE_truth(v) ((v) ? 1 : 0)
#define KYMO__VALUE_ptr(v) ((uintptr_t)(v))
#define KYMO__F_kymo_enum(n, e, v) _ENUM, (_i32, n, e, v)
#define KYMO__F_kymo_array_enum(n, e, p, c) _ENUM_ARRAY, (n, e, p, c)
#define KYMO__F_kymo_seq_enum(n, e, p, c) _ENUM_SEQUENCE, (n, e, p, c)
#define KYMO__F_kymo_string(n, s) _STRING, (n, s)
#define KYMO__F_kymo_array_string(n, p, c) _STRING_ARRAY, (n, p, c)
#define KYMO__F_kymo_seq_string(n, p, c) _STRING_SEQUENCE, (n, p, c)
#define KYMO__F_kymo_text(n, p, c) _TEXT, (n, p, c)
#define KYMO__F_kymo_text_seq(n, p, c) _BYTES, (_TEXT_SEQUENCE, n, p, c)
#define KYMO__F_kymo_blob(n, ...) KYMO__BLOB(__VA_ARGS__, _MEDIA_BLOB, _BLOB, 0), (n, __VA_ARGS__)
#define KYMO__BLOB(a, b, c, kind, ...) kind

/*
 * Up to this many bytes are copied to the scratch buffer; what is longer is copied from where it
 * is.
 */
#define KYMO__INLINE_MAX 64
#define KYMO__INLINE(bytes) ((bytes) <= KYMO__INLINE_MAX ? (bytes) : 0)

#define KYMO__DESC_SCALAR(T, n, v) \
	{KYMO__KIND##T, 0, (uint8_t)sizeof(kymo_##T), KYMO__FLAGS##T, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_SCALAR(T, n, v) +sizeof(kymo_##T)
#define KYMO__PIECES_SCALAR(T, n, v)
#define KYMO__PUT_SCALAR(T, n, v) kymo__put##T(&kymo__c, KYMO__VALUE##T(v)),

#define KYMO__ENUM(type, ...) \
	static const struct kymo_enum_label kymo__labels_##type[] = {__VA_ARGS__}; \
	static const struct kymo_enum_type kymo__enum_##type = {#type, kymo__labels_##type, \
		(uint32_t)(sizeof(kymo__labels_##type) / sizeof(kymo__labels_##type[0])), 0};

#define KYMO__DESC_ENUM(T, n, e, v) \
	{KYMO_FIELD_ENUM, 0, (uint8_t)sizeof(kymo_##T), KYMO__FLAGS_enum##T, 0, KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM(T, n, e, v) +sizeof(kymo_##T)
#define KYMO__PIECES_ENUM(T, n, e, v)
#define KYMO__PUT_ENUM(T, n, e, v) kymo__put##T(&kymo__c, (kymo_##T)(v)),

#define KYMO__DESC_ARRAY(T, n, p, c) \
	{KYMO_FIELD_ARRAY, KYMO__KIND##T, (uint8_t)sizeof(kymo_##T), KYMO__FLAGS##T, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_ARRAY(T, n, p, c) +KYMO__INLINE((c) * sizeof(kymo_##T))
#define KYMO__PIECES_ARRAY(T, n, p, c) +2
#define KYMO__PUT_ARRAY(T, n, p, c) kymo__put_bytes(&kymo__c, (p), (c) * sizeof(kymo_##T)),

#define KYMO__DESC_SEQUENCE(T, n, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO__KIND##T, (uint8_t)sizeof(kymo_##T), KYMO__FLAGS##T, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_SEQUENCE(T, n, p, c) +4 + KYMO__INLINE_MAX
#define KYMO__PIECES_SEQUENCE(T, n, p, c) +2
#define KYMO__PUT_SEQUENCE(T, n, p, c) kymo__put_sequence(&kymo__c, (p), (c), sizeof(kymo_##T)),

#define KYMO__DESC_ENUM_ARRAY(n, e, p, c) \
	{KYMO_FIELD_ARRAY, KYMO_FIELD_ENUM, 4, KYMO_FIELD_SIGNED, (c), KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM_ARRAY(n, e, p, c) KYMO__ROOM_ARRAY(_i32, n, p, c)
#define KYMO__PIECES_ENUM_ARRAY(n, e, p, c) +2
#define KYMO__PUT_ENUM_ARRAY(n, e, p, c) KYMO__PUT_ARRAY(_i32, n, p, c)

#define KYMO__DESC_ENUM_SEQUENCE(n, e, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_ENUM, 4, KYMO_FIELD_SIGNED, 0, KYMO__STRING(n), &kymo__enum_##e},
#define KYMO__ROOM_ENUM_SEQUENCE(n, e, p, c) KYMO__ROOM_SEQUENCE(_i32, n, p, c)
#define KYMO__PIECES_ENUM_SEQUENCE(n, e, p, c) +2
#define KYMO__PUT_ENUM_SEQUENCE(n, e, p, c) KYMO__PUT_SEQUENCE(_i32, n, p, c)

#define KYMO__DESC_STRING(n, s) {KYMO_FIELD_STRING, 0, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING(n, s) +KYMO__INLINE_MAX + 1
#define KYMO__PIECES_STRING(n, s) +2
#define KYMO__PUT_STRING(n, s) kymo__put_string(&kymo__c, (s), KYMO__INLINE_MAX),

#define KYMO__DESC_STRING_ARRAY(n, p, c) {KYMO_FIELD_ARRAY, KYMO_FIELD_STRING, 1, 0, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING_ARRAY(n, p, c) +(c) * (KYMO_PIECE_MIN + 1)
#define KYMO__PIECES_STRING_ARRAY(n, p, c) +(c) * 2
#define KYMO__PUT_STRING_ARRAY(n, p, c) kymo__put_strings(&kymo__c, (p), (c)),

#define KYMO__DESC_STRING_SEQUENCE(n, p, c) \
	{KYMO_FIELD_SEQUENCE, KYMO_FIELD_STRING, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_STRING_SEQUENCE(n, p, c) +4 KYMO__ROOM_STRING_ARRAY(n, p, KYMO_SEQ_STRINGS_MAX)
#define KYMO__PIECES_STRING_SEQUENCE(n, p, c) +KYMO_SEQ_STRINGS_MAX * 2
#define KYMO__PUT_STRING_SEQUENCE(n, p, c) kymo__put_string_sequence(&kymo__c, (p), (c)),

#define KYMO__DESC_TEXT(n, p, c) {KYMO_FIELD_TEXT, 0, 1, 0, (c), KYMO__STRING(n), NULL},
#define KYMO__ROOM_TEXT(n, p, c) KYMO__ROOM_ARRAY(_u8, n, p, c)
#define KYMO__PIECES_TEXT(n, p, c) +2
#define KYMO__PUT_TEXT(n, p, c) KYMO__PUT_ARRAY(_u8, n, p, c)

#define KYMO__DESC_BYTES(K, n, p, c) {KYMO_FIELD##K, 0, 1, 0, 0, KYMO__STRING(n), NULL},
#define KYMO__ROOM_BYTES(K, n, p, c) KYMO__ROOM_SEQUENCE(_u8, n, p, c)
#define KYMO__PIECES_BYTES(K, n, p, c) +2
#define KYMO__PUT_BYTES(K, n, p, c) KYMO__PUT_SEQUENCE(_u8, n, p, c)

#define KYMO__DESC_BLOB(n, p, c) KYMO__DESC_BYTES(_BLOB, n, p, c)
#define KYMO__ROOM_BLOB(n, p, c) KYMO__ROOM_SEQUENCE(_u8, n, p, c)
#define KYMO__PIECES_BLOB(n, p, c) +2
#define KYMO__PUT_BLOB(n, p, c) KYMO__PUT_SEQUENCE(_u8, n, p, c)

#define KYMO__DESC_MEDIA_BLOB(n, media, p, c) \
	{KYMO_FIELD_MEDIA, 0, 1, 0, 0, KYMO__STRING(n) "_media_type", media}, KYMO__DESC_BLOB(n, p, c)
#define KYMO__ROOM_MEDIA_BLOB(n, media, p, c) +1 KYMO__ROOM_BLOB(n, p, c)
#define KYMO__PIECES_MEDIA_BLOB(n, media, p, c) +2
#define KYMO__PUT_MEDIA_BLOB(n, media, p, c) kymo__put_u8(&kymo__c, 0), KYMO__PUT_BLOB(n, p, c)

/*
 * Puts the event into the object's list: a pointer in section kymo_events, which linkers are to
 * keep even where they drop what nothing refers to. In C++ by assembly, because a function may be a
 * template or inline, and GCC refuses to mix those with others in one section of variables.
 */
#ifdef __has_attribute
#if __has_attribute(__retain__)
#define KYMO__IN_SECTION(name) __attribute__((__section__(name), __used__, __retain__))
#endif
#endif
#ifndef KYMO__IN_SECTION
#define KYMO__IN_SECTION(name) __attribute__((__section__(name), __used__))
#endif
#define KYMO__IN_LIST KYMO__IN_SECTION("kymo_events")
#ifdef __LP64__
#define KYMO__WORD ".balign 8\n\t.quad "
#define KYMO__WORD_BYTES "8"
#else
#define KYMO__WORD ".balign 4\n\t.long "
#define KYMO__WORD_BYTES "4"
#endif

#if defined(__cplusplus) && !defined(__clang__) && defined(__PIC__) && (defined(__arm__) || defined(__m68k__))
#define KYMO__LIST(event) \
	static_assert(sizeof(event) == 0, \
		"position-independent code for this processor: use KYMO_EVENT_DEFINE, clang++ or a C file");
#elif !defined(__cplusplus) || defined(__clang__)
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
/*
 * How to write an address that the linker knows: most constraints refuse it in position-independent
 * code; on 32-bit ARM, all of them do.
 */
#if defined(__x86_64__) || defined(__i386__)
#define KYMO__SYMBOL "%p0"
#define KYMO__ADDRESS(event) "X"(event)
#elif defined(__aarch64__)
#define KYMO__SYMBOL "%0"
#define KYMO__ADDRESS(event) "S"(event)
#elif defined(__s390x__)
#define KYMO__SYMBOL "%0"
#define KYMO__ADDRESS(event) "jdd"(event)
#elif defined(__arm__) || defined(__m68k__) /* without it, a # is before the address */
#define KYMO__SYMBOL "%c0"
#define KYMO__ADDRESS(event) "i"(event)
#else
#define KYMO__SYMBOL "%0"
#define KYMO__ADDRESS(event) "i"(event)
#endif
#endif

/*
 * A function to call when the tracer is loaded later than the object; and the note by which it is
 * found (KYMO_NOTE_LATE).
 */
#ifdef __mips__ /* its assembler has no such distances */
#define KYMO__LATE(function)
#else
#define KYMO__LATE(function) \
	static void (*const function##_late)(void) KYMO__IN_SECTION("kymo_late") = function;
__asm__(".pushsection .note.kymo, \"a\", %note\n\t"
	".weak __start_kymo_late, __stop_kymo_late\n\t.hidden __start_kymo_late, __stop_kymo_late\n\t"
	".balign 4\n\t.long 12, 2 * " KYMO__WORD_BYTES ", 1\n\t.asciz \"kymo.loaded\"\n\t"
	KYMO__WORD "__start_kymo_late - .\n\t" KYMO__WORD "__stop_kymo_late - .\n\t.popsection");
#endif

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

/*
 * The memory of a record: a scratch buffer, a list of pieces, and a cursor. kymo__n has the size of
 * KYMO__PIECES; KYMO__DEEP and more: the record has fields of <kymo/nested.h>, which need a second
 * list.
 */
#define KYMO__BUFFERS(room, pieces) \
	unsigned char kymo__room[KYMO_SCRATCH_SLACK room]; \
	typedef char kymo__n[1 pieces]; \
	struct kymo_piece kymo__list[KYMO__LIST_LEN(sizeof(kymo__n))]; \
	struct kymo__cursor kymo__c = {kymo__room, kymo__room, 0, 0, kymo__list}; \
	__asm__("" : "=m"(kymo__room)); /* without fields the buffer has no value: compilers warn */
#define KYMO__DEEP (1 << 20)
#define KYMO__LIST_LEN(n) ((n) < KYMO__DEEP ? (n) : 2 * ((n) % KYMO__DEEP))
#define KYMO__LIST_SIZE (sizeof(kymo__list) / sizeof(kymo__list[0]))

/* Evaluates the values, makes the record and hands it over. */
#define KYMO__RECORD(event, ...) { \
		KYMO__BUFFERS(KYMO__EACH(KYMO__ROOM, __VA_ARGS__), KYMO__EACH(KYMO__PIECES, __VA_ARGS__)) \
		KYMO__EACH(KYMO__PUT, __VA_ARGS__) \
		KYMO__HAND_OVER(event); \
	}
#define KYMO__HAND_OVER(event) \
	(sizeof(kymo__n) >= KYMO__DEEP \
		? kymo__start_walk(event, &kymo__c, KYMO__LIST_SIZE, kymo__record_pieces, 0) \
		: kymo__hand_over(event, &kymo__c, kymo__room, sizeof(kymo__room) - KYMO_SCRATCH_SLACK, KYMO__LIST_SIZE > 1))

/* Refuses to compile a value that is wider than its field, and than int; a constant may be. */
#if defined(__cplusplus)
#define KYMO__FIT(T, v) (__builtin_constant_p(v) ? (kymo_##T)(v) : kymo__fit<kymo_##T>(v))
#else
#define KYMO__FIT(T, v) \
	((void)(sizeof((v) + 0) > sizeof(kymo_##T) && sizeof((v) + 0) > sizeof(int) && \
		!(__builtin_constant_p(v) && (int64_t)(kymo_##T)(v) == (int64_t)(v)) ? kymo__too_wide() : (void)0), (v))
#endif

/*
 * A class is a table of fields and a function that records an event of it; an instance calls that.
 */
#define KYMO__CLASS(provider, cls, ...) \
	static const struct kymo_field kymo__fields_##provider##__##cls[] __attribute__((__unused__)) = { \
		KYMO__EACH(KYMO__DESC, __VA_ARGS__) KYMO__NO_FIELD}; \
	static inline KYMO__QUIET __attribute__((__unused__)) void kymo__class_##provider##__##cls( \
		const struct kymo_event *kymo__ev KYMO__UNWRAP(KYMO__FIRST_TOKEN(__VA_ARGS__, 0))) \
		KYMO__RECORD(kymo__ev, __VA_ARGS__)
#define KYMO__UNWRAP(list) KYMO__UNWRAP_ list
#define KYMO__UNWRAP_(...) __VA_ARGS__
#define KYMO__INSTANCE(provider, cls, name, level) \
	KYMO__C_BEGIN \
	extern __attribute__((__weak__, __visibility__("hidden"))) struct kymo_event_state \
		kymo__state_##provider##__##name; \
	extern __attribute__((__weak__, __visibility__("hidden"))) const struct kymo_event \
		kymo__event_##provider##__##name; \
	struct kymo_event_state kymo__state_##provider##__##name = {0, 0, NULL, NULL, NULL, NULL, NULL}; \
	const struct kymo_event kymo__event_##provider##__##name = { \
		(uint32_t)sizeof(struct kymo_event), KYMO_EVENT_PLAIN, level, #provider, #name, \
		kymo__fields_##provider##__##cls, &kymo__state_##provider##__##name, \
		__FILE__, __LINE__, 0}; \
	static const struct kymo_event *kymo__entry_##provider##__##name \
		KYMO__IN_LIST = &kymo__event_##provider##__##name; \
	static __typeof__(kymo__class_##provider##__##cls) *const kymo__emit_##provider##__##name \
		__attribute__((__unused__)) = kymo__class_##provider##__##cls; \
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

#endif
