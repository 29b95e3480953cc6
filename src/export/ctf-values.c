/* SPDX-License-Identifier: MIT */
/* The values of events, in the encoding that ctf-metadata.c describes. */
#include "export/ctf.h"
#include "reader/format.h"

struct encoder {
	const struct ky_ctf_metadata *m;
	struct ky_buf *b;
	uint32_t *slots;
	const struct ky_value *v; /* the next */
	const uint8_t *data;
	unsigned n_unused; /* bits at the end of the last byte */
};

static void put_bits(struct encoder *e, uint64_t v, unsigned bits)
{
	uint64_t le = htole64(v);

	ky_buf_append(e->b, &le, (bits + 7) / 8);
	e->n_unused = -bits % 8;
}

static void put_bytes(struct encoder *e, const void *bytes, size_t n)
{
	ky_buf_append(e->b, bytes, n);
	e->n_unused = n ? 0 : e->n_unused;
}

static void encode_float(struct encoder *e, const struct ky_node *n, double v)
{
	float f = (float)v;
	uint32_t u32;
	uint64_t u64;

	memcpy(&u32, &f, sizeof(u32));
	memcpy(&u64, &v, sizeof(u64));
	put_bits(e, n->size == 32 ? u32 : u64, n->size);
}

static void encode_int(struct encoder *e, const struct ky_node *n, uint64_t v)
{
	put_bits(e, v, n->is_leb ? 64 : n->size);
}

static void encode_text(struct encoder *e, const struct ky_node *n, const struct ky_value *v)
{
	size_t len;
	char *text;

	if (n->encoding == KY_UTF_8) {
		put_bytes(e, v->text, v->n);
	} else {
		text = ky_text_utf8(n, v, &len);
		put_bytes(e, text ? text : "", text ? strnlen(text, len) : 0);
		free(text);
	}
	put_bytes(e, "", 1);
}

static void set_slot(struct encoder *e, const struct ky_node *n, uint64_t v)
{
	int slot = ky_ctf_slot_of(e->m, n);

	if (slot >= 0)
		e->slots[slot] = (uint32_t)v;
}

static void encode(struct encoder *e, const struct ky_node *n);

static void encode_array(struct encoder *e, const struct ky_node *n)
{
	const struct ky_value *v = e->v++;
	const struct ky_node *elem = n->children;
	uint64_t at = v->at;

	if (n->is_text) {
		encode_text(e, n, v);
		return;
	}
	/* An array is aligned even if it has no element. */
	e->n_unused = 0;
	if (n->kind == KY_NODE_SEQUENCE)
		set_slot(e, n, v->n);
	if (n->is_blob)
		put_bytes(e, e->data + v->at / 8, v->n);
	for (uint64_t i = 0; i < v->n && !n->is_blob; i++) {
		if (!n->is_scalars)
			encode(e, elem);
		else if (elem->kind == KY_NODE_INT)
			encode_int(e, elem, ky_read_int(e->data, at, elem));
		else
			encode_float(e, elem, ky_read_float(e->data, at, elem));
		at += n->is_scalars ? ky_node_stride(elem) : 0;
	}
}

/* Without a tag, the option's sequence gets its length; those of the others are still 0. */
static void encode_variant(struct encoder *e, const struct ky_node *n)
{
	const struct ky_value *v = e->v++;

	if (v->u == KY_NO_OPTION)
		return;
	set_slot(e, &n->children[v->u], 1);
	encode(e, &n->children[v->u]);
}

static void encode(struct encoder *e, const struct ky_node *n)
{
	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		encode_int(e, n, (e->v++)->u);
		break;
	case KY_NODE_FLOAT:
		encode_float(e, n, (e->v++)->f);
		break;
	case KY_NODE_STRING:
		encode_text(e, n, e->v++);
		break;
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		encode_array(e, n);
		break;
	case KY_NODE_STRUCT:
		for (uint32_t i = 0; i < n->n; i++)
			if (n->children[i].is_shown)
				encode(e, &n->children[i]);
		break;
	case KY_NODE_VARIANT:
		encode_variant(e, n);
		break;
	}
}

void ky_ctf_encode(const struct ky_ctf_metadata *m, struct ky_buf *b, uint32_t *slots,
	unsigned *n_unused, const struct ky_node *scope, const struct ky_value *v,
	const uint8_t *data)
{
	struct encoder e = {m, b, slots, v, data, *n_unused};

	encode(&e, scope);
	*n_unused = e.n_unused;
}

/* The value of a field without information: of an enumeration, the first that has a label. */
static uint64_t zero_of(const struct ky_node *n)
{
	return n->is_enum && n->type->n ? n->type->ranges[0].lo : 0;
}

static void encode_zero(struct encoder *e, const struct ky_node *n);

/* The option that the tag selects. Without a tag, all sequences of options are empty. */
static void encode_zero_variant(struct encoder *e, const struct ky_node *n)
{
	const struct ky_choices *c = n->choices;
	const struct ky_segment *chosen = ky_segments_find(&c->segments, zero_of(n->depends_on));

	if (chosen && ky_ctf_slot_of(e->m, &n->children[0]) < 0)
		encode_zero(e, &n->children[c->options[c->segments.indexes[chosen->first]]]);
}

static void encode_zero(struct encoder *e, const struct ky_node *n)
{
	bool is_list = n->kind == KY_NODE_STRUCT || n->kind == KY_NODE_ARRAY;

	if (ky_ctf_is_text(n))
		put_bytes(e, "", 1);
	else if (n->kind == KY_NODE_VARIANT)
		encode_zero_variant(e, n);
	else if (n->kind == KY_NODE_INT)
		encode_int(e, n, zero_of(n));
	else if (n->kind == KY_NODE_FLOAT)
		encode_float(e, n, 0);
	else if (n->is_blob)
		for (uint64_t i = 0; i < n->count; i++)
			put_bytes(e, "", 1);
	else if (n->kind == KY_NODE_ARRAY)
		for (uint64_t i = 0; i < n->count; i++)
			encode_zero(e, n->children);
	else
		for (uint32_t i = 0; is_list && i < n->n; i++)
			if (n->children[i].is_shown)
				encode_zero(e, &n->children[i]);
}

void ky_ctf_encode_zero(const struct ky_ctf_metadata *m, struct ky_buf *b, unsigned *n_unused,
	const struct ky_node *scope)
{
	struct encoder e = {.m = m, .b = b};

	encode_zero(&e, scope);
	*n_unused = e.n_unused;
}
