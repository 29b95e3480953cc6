/* SPDX-License-Identifier: MIT */
#include "reader/decode.h"

/* Bits that do not fill whole bytes, or not 1, 2, 4 or 8 of them. At most 9 bytes are touched. */
static uint64_t read_bits_slow(const uint8_t *data, uint64_t at, unsigned size, bool big_endian)
{
	const uint8_t *p = data + at / 8;
	unsigned shift = at % 8, n = (shift + size + 7) / 8;
	unsigned __int128 v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[big_endian ? i : n - 1 - i];
	v >>= big_endian ? n * 8 - shift - size : shift;
	return size == 64 ? (uint64_t)v : (uint64_t)v & (((uint64_t)1 << size) - 1);
}

static uint64_t read_bits(const uint8_t *data, uint64_t at, unsigned size, bool big_endian)
{
	const uint8_t *p = data + at / 8;
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	if (at % 8)
		return read_bits_slow(data, at, size, big_endian);
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
		return read_bits_slow(data, at, size, big_endian);
	}
}

uint64_t ky_read_int(const uint8_t *data, uint64_t at, const struct ky_node *n)
{
	uint64_t v = read_bits(data, at, n->size, n->big_endian);

	if (n->is_signed && n->size < 64 && v >> (n->size - 1))
		v |= ~(uint64_t)0 << n->size;
	return v;
}

double ky_read_float(const uint8_t *data, uint64_t at, const struct ky_node *n)
{
	uint64_t v = read_bits(data, at, n->size, n->big_endian);
	uint32_t v32 = (uint32_t)v;
	float f;
	double d;

	if (n->size == 32) {
		memcpy(&f, &v32, sizeof(f));
		return f;
	}
	memcpy(&d, &v, sizeof(d));
	return d;
}

static int align(struct ky_decoder *d, const struct ky_node *n)
{
	uint64_t pos = ky_align_up(d->pos, n->align);

	if (pos > d->end)
		return -EBADMSG;
	d->pos = pos;
	return 0;
}

/* A new value, or NULL without memory or beyond the limit. */
static struct ky_value *add_value(struct ky_values *out, const struct ky_node *n)
{
	struct ky_value *v;

	if (out->n == out->cap) {
		size_t cap = out->cap ? 2 * out->cap : 64;

		v = out->cap < KY_MAX_VALUES ? realloc(out->v, cap * sizeof(*v)) : NULL;
		if (!v)
			return NULL;
		out->v = v;
		out->cap = cap;
	}
	v = &out->v[out->n++];
	v->node = n;
	return v;
}

/* Adds a value if it is wanted. */
static int emit(struct ky_values *out, const struct ky_node *n, struct ky_value value)
{
	struct ky_value *v = out ? add_value(out, n) : NULL;

	if (!out)
		return 0;
	if (!v)
		return out->cap < KY_MAX_VALUES ? -ENOMEM : -EBADMSG;
	value.node = n;
	*v = value;
	return 0;
}

static void set_role(struct ky_decoder *d, const struct ky_node *n, uint64_t v)
{
	d->role[n->role] = v;
	d->have |= 1u << n->role;
}

/* A timestamp of fewer than 64 bits is the low part of the next clock value that ends in it. */
static void move_clock(struct ky_decoder *d, const struct ky_node *n, uint64_t v)
{
	uint64_t mask = n->size == 64 ? ~(uint64_t)0 : ((uint64_t)1 << n->size) - 1;
	uint64_t low = d->clock & mask;

	v &= mask;
	if (n->size < 64 && v < low)
		d->clock += mask + 1;
	d->clock = (d->clock & ~mask) | v;
}

static int decode_int(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	uint64_t v;

	if (n->size > d->end - d->pos)
		return -EBADMSG;
	v = ky_read_int(d->data, d->pos, n);
	d->pos += n->size;
	if (n->slot != KY_NO_SLOT)
		d->slots[n->slot] = v;
	if (n->role)
		set_role(d, n, v);
	if (n->is_clock)
		move_clock(d, n, v);
	return emit(out, n, (struct ky_value){.u = v});
}

static int decode_float(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	double v;

	if (n->size > d->end - d->pos)
		return -EBADMSG;
	v = ky_read_float(d->data, d->pos, n);
	d->pos += n->size;
	return emit(out, n, (struct ky_value){.f = v});
}

static int decode_string(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	const char *text = (const char *)d->data + d->pos / 8;
	const char *nul = memchr(text, 0, (d->end - d->pos) / 8);

	if (!nul)
		return -EBADMSG;
	d->pos += (uint64_t)(nul + 1 - text) * 8;
	return emit(out, n, (struct ky_value){.text = text, .n = nul - text});
}

static int decode_node(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out);

static int decode_numbers(
	struct ky_decoder *d, const struct ky_node *n, uint64_t count, struct ky_values *out)
{
	const struct ky_node *elem = n->children;
	uint64_t at = d->pos, bits = count ? (count - 1) * ky_node_stride(elem) + elem->size : 0;

	if (count > d->end - d->pos || bits > d->end - d->pos)
		return -EBADMSG;
	d->pos += bits;
	if (n->role)
		set_role(d, n, at);
	if (n->is_text)
		return emit(out, n,
			(struct ky_value){.text = (const char *)d->data + at / 8,
				.n = strnlen((const char *)d->data + at / 8, count)});
	return emit(out, n, (struct ky_value){.at = at, .n = count});
}

static int decode_array(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	uint64_t count = n->kind == KY_NODE_SEQUENCE ? d->slots[n->from] : n->count;
	int r;

	if (count > d->end - d->pos + d->n_empty)
		return -EBADMSG;
	if (n->is_scalars)
		return decode_numbers(d, n, count, out);
	r = emit(out, n, (struct ky_value){.n = count});
	for (uint64_t i = 0; i < count && !r; i++) {
		uint64_t at = d->pos;

		r = decode_node(d, n->children, out);
		if (d->pos == at && !r && !d->n_empty--)
			r = -EBADMSG;
	}
	return r;
}

static const struct ky_choice *choose(const struct ky_node *n, uint64_t tag)
{
	for (uint32_t i = 0; i < n->n_choices; i++) {
		const struct ky_choice *c = &n->choices[i];

		if (n->depends_on->is_signed
				? (int64_t)tag >= (int64_t)c->lo && (int64_t)tag <= (int64_t)c->hi
				: tag >= c->lo && tag <= c->hi)
			return c;
	}
	return NULL;
}

static int decode_variant(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	const struct ky_choice *c = choose(n, d->slots[n->from]);
	int r;

	if (!c)
		return -EBADMSG;
	r = emit(out, n, (struct ky_value){.u = c->option});
	return r ? r : decode_node(d, &n->children[c->option], out);
}

static int decode_struct(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	int r = 0;

	for (uint32_t i = 0; i < n->n && !r; i++)
		r = decode_node(d, &n->children[i], out);
	return r;
}

static int decode_node(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	int r = align(d, n);

	if (r < 0)
		return r;
	if (!n->is_shown)
		out = NULL;
	switch ((enum ky_node_kind)n->kind) {
	case KY_NODE_INT:
		return decode_int(d, n, out);
	case KY_NODE_FLOAT:
		return decode_float(d, n, out);
	case KY_NODE_STRING:
		return decode_string(d, n, out);
	case KY_NODE_ARRAY:
	case KY_NODE_SEQUENCE:
		return decode_array(d, n, out);
	case KY_NODE_STRUCT:
		return decode_struct(d, n, out);
	case KY_NODE_VARIANT:
		return decode_variant(d, n, out);
	}
	return -EBADMSG;
}

int ky_decode(struct ky_decoder *d, const struct ky_node *scope, struct ky_values *out)
{
	return decode_node(d, scope, out);
}
