/* SPDX-License-Identifier: MIT */
/*
 * Bits to values, along a compiled layout. Pure, and the place where hostile packets are met:
 * nothing is read outside of [0, end), and the work is bounded by the bits and the layout.
 *
 * Values come in the order of the fields that are shown, without structures (their members follow
 * each other). An array of plain numbers is one value, and its elements are read when wanted.
 */
#ifndef READER_DECODE_H
#define READER_DECODE_H

#include "reader/layout.h"

struct ky_value {
	const struct ky_node *node;
	union {
		uint64_t u;	  /* INT: sign-extended if it is signed; VARIANT: the option */
		double f;	  /* FLOAT */
		const char *text; /* STRING and text arrays: n bytes, in the packet */
		uint64_t at;	  /* ARRAY, SEQUENCE of plain numbers: bit of the first */
	};
	uint64_t n; /* STRING, ARRAY, SEQUENCE: length; elements follow if they are no plain numbers
		     */
};

/* Values of one scope. Grows as needed, up to KY_MAX_VALUES. */
struct ky_values {
	struct ky_value *v; /* owned */
	size_t n, cap;
};

#define KY_MAX_VALUES ((size_t)1 << 20)

struct ky_decoder {
	const uint8_t *data; /* the packet; borrowed */
	uint64_t pos, end;   /* bits */
	uint64_t *slots;     /* n_slots of the layout; borrowed */
	uint64_t clock;	     /* value of the clock at pos */
	uint64_t n_empty; /* how many more elements of arrays may take no space: bounds the work */
	uint32_t have;	  /* roles that were met: 1 << role */
	uint64_t role[KY_N_ROLES];
};

/*
 * Decodes one scope. out: where its values are added, or NULL. Returns 0, -EBADMSG when the bits
 * are none of the layout's (pos is then anywhere up to end), or -ENOMEM.
 */
int ky_decode(struct ky_decoder *d, const struct ky_node *scope, struct ky_values *out);

/* An INT at this bit; the caller knows that it lies within the packet. */
uint64_t ky_read_int(const uint8_t *data, uint64_t at, const struct ky_node *n);
/* The same of a FLOAT. */
double ky_read_float(const uint8_t *data, uint64_t at, const struct ky_node *n);

/* Distance in bits from element to element of an array of plain numbers. */
static inline uint64_t ky_node_stride(const struct ky_node *elem)
{
	return ky_align_up(elem->size, elem->align);
}

#endif
