/* SPDX-License-Identifier: MIT */
/*
 * Linked code: instructions, each with the address of its function and up to three successors.
 * link.c writes it, and run.c runs it.
 */
#ifndef FILTER_INSN_H
#define FILTER_INSN_H

#include "filter/program.h"
#include "filter/quick.h"

struct ky_filter_insn;
struct ky_filter_frame;

/* base, len: the payload's first piece. */
typedef bool (*ky_filter_fn)(const struct ky_filter_insn *pc, const uint8_t *base, size_t len,
	struct ky_filter_frame *f);

struct ky_filter_insn {
	ky_filter_fn run;
	union {
		union ky_filter_number number;
		const void *argument; /* of a context */
		struct {
			uint32_t element, skip; /* WITHIN */
		};
	};
	/*
	 * Bytes from here to the next instruction: if the test is true, or after the value; if the
	 * test is false; if there is no value.
	 */
	int32_t yes, no, none;
	uint8_t slot; /* result and first operand; in near tests: the enum ky_filter_insn_op */
	uint8_t anchor;
	uint8_t size;
	uint8_t flags; /* enum ky_insn_flags; in a context: its type */
	union {
		struct {
			/*
			 * Of a field: bytes behind its anchor; of a near field: to the byte behind
			 * it; of data: from here.
			 */
			uint32_t offset;
			/* of a string among others; or the number of bytes of a text */
			uint32_t index;
		};
		bool (*get_number)(
			const void *argument, enum ky_filter_type type, uint64_t *ret_bits);
		int (*get_string)(const void *argument, char *buf, size_t size);
	};
};

enum ky_insn_flags {
	KY_INSN_SIGNED = 1,
	KY_INSN_NETWORK = 2,
	KY_INSN_SEQUENCE = 4, /* strings or a text after a u32 count */
	KY_INSN_WITHIN =
		8,	  /* in an element of a sequence, after its count: struct ky_filter_place */
	KY_INSN_NUL = 16, /* a text that only its NUL ends */
};

/*
 * Code begins with this. Instructions follow, then the steps from anchor to anchor, then patterns.
 */
struct ky_filter_code {
	uint32_t size;	/* of all */
	uint32_t steps; /* offset of struct ky_filter_step[] */
	struct ky_filter_quick quick;
	struct ky_filter_insn insns[];
};

/* A step from one anchor to the next: over `skip` bytes and a field of variable size. */
struct ky_filter_step {
	uint32_t skip;
	uint32_t count; /* of an array of strings */
	uint32_t size;	/* of an element; 0: they are strings */
	uint32_t kind;	/* KYMO_FIELD_STRING, ARRAY (of strings) or SEQUENCE (of anything) */
};

/*
 * A pattern as an automaton (Knuth, Morris, Pratt, one for each part between stars): in state s the
 * next byte must be bytes[s]; if it is another byte, fail[s] is the state to continue in. One pass
 * for any number of stars.
 */
struct ky_filter_pattern {
	uint16_t n;	 /* states; n: all is matched */
	uint16_t open;	 /* ends with a star: any rest matches */
	uint16_t fail[]; /* n + 1, then n bytes */
};
#define KY_PATTERN_DEAD 0xffffu /* no match is possible */
#define KY_PATTERN_STAY 0xfffeu /* the star before takes the byte */

#define KY_INSN_NEAR(F)                                                                            \
	F(S8, int8_t, int64_t)                                                                     \
	F(U8, uint8_t, int64_t)                                                                    \
	F(S16, int16_t, int64_t)                                                                   \
	F(U16, uint16_t, int64_t)                                                                  \
	F(S32, int32_t, int64_t)                                                                   \
	F(U32, uint32_t, int64_t)                                                                  \
	F(S64, int64_t, int64_t)                                                                   \
	F(U64, uint64_t, uint64_t)

/* v[slot] = v[slot] op v[slot + 1], where that always has a value */
#define KY_INSN_ARITHMETIC(F)                                                                      \
	F(ADD, u, a + b)                                                                           \
	F(SUB, u, a - b)                                                                           \
	F(MUL, u, a *b)                                                                            \
	F(BIT_AND, u, a &b)                                                                        \
	F(BIT_OR, u, a | b)                                                                        \
	F(BIT_XOR, u, a ^ b)                                                                       \
	F(ADD_F, f, a + b)                                                                         \
	F(SUB_F, f, a - b)                                                                         \
	F(MUL_F, f, a *b)                                                                          \
	F(DIV_F, f, a / b)

/* Operations that are undefined in C have no value; INT64_MIN / -1 wraps, as sums do. */
#define KY_INSN_PARTIAL(F)                                                                         \
	F(DIV_S, s, b != 0, b == -1 ? (int64_t) - (uint64_t)a : a / b)                             \
	F(DIV_U, u, b != 0, a / b)                                                                 \
	F(MOD_S, s, b != 0, b == -1 ? 0 : a % b)                                                   \
	F(MOD_U, u, b != 0, a % b)                                                                 \
	F(SHL, u, b < 64, a << b)                                                                  \
	F(SHR_S, s, (uint64_t)b < 64, a >> b)                                                      \
	F(SHR_U, u, b < 64, a >> b)

/* Tests of v[slot] and v[slot + 1] */
#define KY_INSN_TESTS(F)                                                                           \
	F(EQ, u, a == b)                                                                           \
	F(LT_S, s, a < b)                                                                          \
	F(LE_S, s, a <= b)                                                                         \
	F(LT_U, u, a < b)                                                                          \
	F(LE_U, u, a <= b)                                                                         \
	F(EQ_F, f, a == b)                                                                         \
	F(LT_F, f, a < b)                                                                          \
	F(LE_F, f, a <= b)                                                                         \
	F(GT_F, f, a > b)                                                                          \
	F(GE_F, f, a >= b)

#define KY_INSN_NEAR_OPS(T, type, wide)                                                            \
	KY_INSN_LT_##T, KY_INSN_LE_##T, KY_INSN_EQ_##T, KY_INSN_LOAD_##T,
#define KY_INSN_OP(name, ...) KY_INSN_##name,
/* clang-format off */
enum ky_filter_insn_op {
	KY_INSN_PASS,
	KY_INSN_REJECT,
	KY_INSN_NEAR(KY_INSN_NEAR_OPS)
	KY_INSN_LOAD_F32,
	KY_INSN_LOAD_FAR,
	KY_INSN_LOAD_FAR_FLOAT,
	KY_INSN_LOAD_STRING,
	KY_INSN_LOAD_STRING_ELEMENT,
	KY_INSN_CONTEXT,
	KY_INSN_CONTEXT_STRING,
	KY_INSN_CONSTANT,
	KY_INSN_NEGATE,
	KY_INSN_NEGATE_F,
	KY_INSN_COMPLEMENT,
	KY_INSN_S_TO_F,
	KY_INSN_U_TO_F,
	KY_INSN_ARITHMETIC(KY_INSN_OP)
	KY_INSN_PARTIAL(KY_INSN_OP)
	KY_INSN_TESTS(KY_INSN_OP)
	KY_INSN_TRUE,
	KY_INSN_TRUE_F,
	KY_INSN_MATCH,
	KY_INSN_SAME,
	KY_INSN_N,
};
/* clang-format on */

extern const ky_filter_fn ky_filter_functions[KY_INSN_N];

/* Makes the short form of the code that begins here, or one that is never used. */
void ky_filter_make_quick(const struct ky_filter_insn *i, struct ky_filter_quick *ret);
/* Computes an instruction on constants: *a = op(*a, b). Returns false if it has no value. */
bool ky_filter_fold(enum ky_filter_insn_op op, union ky_filter_number *a, union ky_filter_number b);

#endif
