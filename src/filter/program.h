/* SPDX-License-Identifier: MIT */
/*
 * A filter's program, as bytes and as checked nodes (docs/filter-program.md). It is the expression
 * in postfix order, without jumps, so that only the stack has to be checked.
 */
#ifndef FILTER_PROGRAM_H
#define FILTER_PROGRAM_H

#include "filter/filter.h"

#define KY_FILTER_VERSION 1

/* Numbers are never reused. */
enum ky_filter_op {
	KY_OP_SIGNED = 1, /* i64 */
	KY_OP_UNSIGNED,	  /* u64 */
	KY_OP_FLOAT,	  /* f64 */
	/* u16 length, pattern: `*` matches any text, `\` makes the next byte literal */
	KY_OP_STRING,
	KY_OP_FIELD,   /* u8 length, path: "name", "structure.name", "array[1].name" */
	KY_OP_ELEMENT, /* u8 length, path, u32 index */
	KY_OP_CONTEXT, /* u8 length, name */
	KY_OP_NOT = 16,
	KY_OP_NEGATE,
	KY_OP_COMPLEMENT,
	KY_OP_OR = 32,
	KY_OP_AND,
	KY_OP_BIT_OR,
	KY_OP_BIT_XOR,
	KY_OP_BIT_AND,
	KY_OP_EQ,
	KY_OP_NE,
	KY_OP_LT,
	KY_OP_LE,
	KY_OP_GT,
	KY_OP_GE,
	KY_OP_SHL,
	KY_OP_SHR,
	KY_OP_ADD,
	KY_OP_SUB,
	KY_OP_MUL,
	KY_OP_DIV,
	KY_OP_MOD,
	KY_OP_END,
};

union ky_filter_number {
	int64_t s;
	uint64_t u;
	double f;
};

/*
 * The place of a value: `offset` bytes behind an anchor. Anchor 0 is the payload's begin, anchor n
 * the end of its n-th field of variable size; fields in structures are counted in order. A value in
 * an element of a sequence lies `skip` bytes behind the sequence's count, which is at that place
 * and must be greater than `element`.
 */
struct ky_filter_place {
	/*
	 * as in struct kymo_field, with SIGNED also set for INT; of an element: its own, but
	 * strings have those of their container
	 */
	uint8_t kind, elem, size, flags;
	uint8_t anchor;
	bool within; /* an element of a sequence */
	uint32_t offset, count;
	uint32_t element, skip;
};

struct ky_filter_node {
	uint8_t op;	/* enum ky_filter_op */
	uint8_t type;	/* enum ky_filter_type */
	uint8_t height; /* depth of the recursion that generates its code */
	uint8_t len;	/* length of a name */
	/* node of the left operand; the right or only operand is the previous node */
	uint16_t left;
	uint16_t size;	  /* STRING */
	uint32_t index;	  /* ELEMENT */
	const char *text; /* STRING, names; borrowed from the program */
	union ky_filter_number number;
	struct ky_filter_place place;	  /* FIELD and ELEMENT, after linking */
	struct ky_filter_context context; /* CONTEXT */
};

struct ky_filter_tree {
	unsigned n_nodes;
	struct ky_filter_node nodes[KY_FILTER_NODES_MAX]; /* the last one is the expression */
};

/*
 * Checks a program and gives each node its type. fields: NULL if no event is known; then fields
 * have type ANY. Returns 0; -EBADMSG; or -EINVAL, *error and the node in question in *ret_node.
 */
int ky_filter_check(struct ky_filter_tree *tree, const void *program, size_t len,
	const struct kymo_field *fields, ky_filter_find_context find, unsigned *ret_node,
	struct ky_filter_error *error);

/*
 * Finds the place of the field, or of the element, that the node names. Returns 0, or -EINVAL and
 * *error.
 */
int ky_filter_find_place(const struct kymo_field *fields, struct ky_filter_node *node,
	struct ky_filter_error *error);

/* Writes the text of the error. */
void ky_filter_complain(struct ky_filter_error *error, const char *fmt, ...) KY_PRINTF(2, 3);

static inline bool ky_filter_is_literal(const struct ky_filter_node *n)
{
	return n->op <= KY_OP_FLOAT;
}

static inline bool ky_filter_is_condition(uint8_t op)
{
	return op == KY_OP_NOT || op == KY_OP_OR || op == KY_OP_AND ||
	       (op >= KY_OP_EQ && op <= KY_OP_GE);
}

#endif
