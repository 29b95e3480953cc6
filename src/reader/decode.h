/* SPDX-License-Identifier: MIT */
/*
 * Decodes bits to values along a compiled layout. Pure. Packets are hostile input: the decoder
 * reads nothing outside of [0, end), and its work is bounded by the number of bits and the layout.
 *
 * Values come in the order of the shown fields. A structure has no value of its own, its members
 * have. An array of plain numbers is one value: users read its elements with ky_read_int.
 */
#ifndef READER_DECODE_H
#define READER_DECODE_H

#include "reader/layout.h"

struct ky_value {
	const struct ky_node *node;
	union {
		/* INT: sign-extended if signed; VARIANT: index of the option, or KY_NO_OPTION. */
		uint64_t u;
		double f;	  /* FLOAT */
		const char *text; /* STRING and text arrays: n bytes, in the packet */
		uint64_t at;	  /* ARRAY, SEQUENCE of plain numbers: bit offset of the first */
	};
	uint64_t n; /* STRING, ARRAY, SEQUENCE: length. Elements that are not plain numbers follow.
		     */
};

/* A list of values that grows as needed, up to max. */
struct ky_values {
	struct ky_value *v; /* owned */
	size_t n, cap;
	size_t max; /* KY_MAX_VALUES for each event */
};

#define KY_MAX_VALUES ((size_t)1 << 22)

struct ky_decoder {
	const uint8_t *data; /* the packet; borrowed */
	uint64_t pos, end;   /* bits */
	uint64_t *slots;     /* n_slots of the layout; borrowed */
	uint64_t clock;	     /* value of the clock at pos */
	uint64_t n_empty;    /* number of further fields that may have no bits: bounds the work */
	uint32_t have;	     /* set of roles decoded so far: 1 << role */
	uint64_t role[KY_N_ROLES];
};

/* Returns true if the decoder has met a field of this role. */
static inline bool ky_has_role(const struct ky_decoder *d, enum ky_role role)
{
	return d->have & 1u << role;
}

/* Returns the value of a role that was met, or other. */
static inline uint64_t ky_role_or(const struct ky_decoder *d, enum ky_role role, uint64_t other)
{
	return ky_has_role(d, role) ? d->role[role] : other;
}

/*
 * Decodes one scope, which is a structure. Appends its values to out, which may be NULL. Returns 0,
 * -ENOMEM, or -EBADMSG if the bits do not match the layout; pos is then anywhere up to end.
 */
int ky_decode(struct ky_decoder *d, const struct ky_node *scope, struct ky_values *out);

/*
 * Steps over a scope with steps: what they do not say is not kept. Returns 0, or -EBADMSG with pos
 * where ky_decode leaves it: the search for the next packet begins there.
 */
int ky_decode_steps(struct ky_decoder *d, const struct ky_node *scope);

/* Returns the distance in bits between elements of an array of plain numbers. */
static inline uint64_t ky_node_stride(const struct ky_node *elem)
{
	return ky_align_up(elem->size, elem->align);
}

/* Appends n values. Returns 0, -ENOMEM, or -EBADMSG beyond the limit. */
int ky_values_add(struct ky_values *values, const struct ky_value *v, size_t n);

/* Reads bits of any size at any place. */
uint64_t ky_read_bits_slow(const uint8_t *data, uint64_t at, unsigned size, bool big_endian);

static inline uint64_t ky_read_bits(
	const uint8_t *data, uint64_t at, unsigned size, bool big_endian)
{
	const uint8_t *p = data + at / 8;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	if (at % 8)
		return ky_read_bits_slow(data, at, size, big_endian);
	switch (size) {
	case 8:
		return *p;
	case 16:
		memcpy(&v16, p, sizeof(v16));
		return big_endian ? be16toh(v16) : le16toh(v16);
	case 32:
		memcpy(&v32, p, sizeof(v32));
		return big_endian ? be32toh(v32) : le32toh(v32);
	case 64:
		memcpy(&v64, p, sizeof(v64));
		return big_endian ? be64toh(v64) : le64toh(v64);
	default:
		return ky_read_bits_slow(data, at, size, big_endian);
	}
}

/* Reads an INT at this bit. The caller checks that it lies within the packet. */
static inline uint64_t ky_read_int(const uint8_t *data, uint64_t at, const struct ky_node *n)
{
	uint64_t v = ky_read_bits(data, at, n->size, n->big_endian);

	if (n->is_signed && n->size < 64 && v >> (n->size - 1))
		v |= ~(uint64_t)0 << n->size;
	return v;
}

/* Reads a FLOAT at this bit. */
double ky_read_float(const uint8_t *data, uint64_t at, const struct ky_node *n);

/* Bytes of a text of at most count, up to its NUL. */
uint64_t ky_text_length(const char *text, uint64_t count, uint8_t encoding);

/* Of an array of plain numbers. */
static inline struct ky_value ky_array_value(
	const uint8_t *data, uint64_t at, const struct ky_node *n, uint64_t count)
{
	const char *text = (const char *)data + at / 8;

	if (n->is_text)
		return (struct ky_value){
			.node = n, .text = text, .n = ky_text_length(text, count, n->encoding)};
	return (struct ky_value){.node = n, .at = at, .n = count};
}

/* The value of a member of a run, at a whole byte that the caller has checked. */
static inline struct ky_value ky_flat_value(
	const uint8_t *data, uint64_t at, const struct ky_node *n)
{
	struct ky_value v = {.node = n};

	if (n->kind == KY_NODE_INT)
		v.u = ky_read_int(data, at, n);
	else if (n->kind == KY_NODE_FLOAT)
		v.f = ky_read_float(data, at, n);
	else
		return ky_array_value(data, at, n, n->count);
	return v;
}

/* The number of a step of the kinds U8 .. U64, I8 .. I64. */
static inline uint64_t ky_step_unsigned(const struct ky_step *s, const uint8_t *at)
{
	return ky_read_bits(at, 0, s->bytes * 8, false);
}

static inline int64_t ky_step_signed(const struct ky_step *s, const uint8_t *at)
{
	unsigned unused = 64 - s->bytes * 8;

	return (int64_t)(ky_step_unsigned(s, at) << unused) >> unused;
}

/*
 * Sets the clock to a timestamp. One of fewer than 64 bits is the low part of the next value that
 * ends in it.
 */
static inline void ky_move_clock(struct ky_decoder *d, unsigned bits, uint64_t v)
{
	uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
	uint64_t low = d->clock & mask;

	v &= mask;
	if (bits < 64 && v < low)
		d->clock += mask + 1;
	d->clock = (d->clock & ~mask) | v;
}

/*
 * Decodes the head of a record if it is a short one, and returns true with its identifier. Returns
 * false and does nothing if it is a longer one. h->bits is not 0.
 */
static inline bool ky_decode_short_head(
	struct ky_decoder *d, const struct ky_short_head *h, uint64_t *ret_id)
{
	uint64_t at = ky_align_up(d->pos, h->align), word, id, time;

	if (at > d->end || h->bits > d->end - at)
		return false;
	word = ky_read_bits(d->data, at, h->bits, false);
	id = word & (((uint64_t)1 << h->id->size) - 1);
	time = word >> h->id->size;
	if (id < h->lo || id > h->hi)
		return false;
	d->pos = at + h->bits;
	d->slots[h->id->slot] = id;
	d->slots[h->time->slot] = time;
	ky_move_clock(d, h->time->size, time);
	*ret_id = id;
	return true;
}

#endif
