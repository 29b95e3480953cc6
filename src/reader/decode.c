/* SPDX-License-Identifier: MIT */
#include "reader/decode.h"

/* Reads at most 9 bytes. */
uint64_t ky_read_bits_slow(const uint8_t *data, uint64_t at, unsigned size, bool big_endian)
{
	const uint8_t *p = data + at / 8;
	unsigned shift = at % 8, n = (shift + size + 7) / 8;
	unsigned __int128 v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[big_endian ? i : n - 1 - i];
	v >>= big_endian ? n * 8 - shift - size : shift;
	return size == 64 ? (uint64_t)v : (uint64_t)v & (((uint64_t)1 << size) - 1);
}

double ky_read_float(const uint8_t *data, uint64_t at, const struct ky_node *n)
{
	uint64_t v = ky_read_bits(data, at, n->size, n->big_endian);
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

static inline int align(struct ky_decoder *d, const struct ky_node *n)
{
	uint64_t pos = ky_align_up(d->pos, n->align);

	if (pos > d->end)
		return -EBADMSG;
	d->pos = pos;
	return 0;
}

/* Makes room for n more values. Returns 0, -ENOMEM, or -EBADMSG beyond the limit. */
static __attribute__((noinline)) int grow_values(struct ky_values *out, size_t n)
{
	size_t cap = KY_MAX(2 * out->cap, KY_MAX(out->n + n, (size_t)64));
	struct ky_value *v;

	if (n > out->max || out->n > out->max - n)
		return -EBADMSG;
	v = reallocarray(out->v, cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	out->v = v;
	out->cap = cap;
	return 0;
}

static inline int reserve_values(struct ky_values *out, size_t n)
{
	return ky_likely(n <= out->cap - out->n) ? 0 : grow_values(out, n);
}

int ky_values_add(struct ky_values *values, const struct ky_value *v, size_t n)
{
	int r = reserve_values(values, n);

	if (r)
		return r;
	for (size_t i = 0; i < n; i++)
		values->v[values->n++] = v[i];
	return 0;
}

/*
 * Appends a value, unless the caller wants none. To put the value together takes longer than the
 * rest: functions that are mostly called for none ask before.
 */
static inline int emit_value(struct ky_values *out, const struct ky_node *n, struct ky_value value)
{
	int r = out ? reserve_values(out, 1) : 0;

	if (!out || r)
		return r;
	value.node = n;
	out->v[out->n++] = value;
	return 0;
}

static void set_role(struct ky_decoder *d, const struct ky_node *n, uint64_t v)
{
	d->role[n->role] = d->role[n->second_role] = v;
	d->have |= 1u << n->role | 1u << n->second_role;
}

/*
 * LEB128: seven bits in each byte, the lowest first. The highest bit of the last byte is 0.
 * *ret_bits: how many bits of the number are there, which matters if it is a part of the clock.
 */
static bool read_leb(struct ky_decoder *d, bool is_signed, uint64_t *ret_v, unsigned *ret_bits)
{
	uint64_t v = 0;
	unsigned shift = 0;

	for (; d->end - d->pos >= 8 && shift < 70; shift += 7) {
		uint8_t byte = d->data[d->pos / 8];

		d->pos += 8;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && byte & 0x40 && shift + 7 < 64)
			v |= ~(uint64_t)0 << (shift + 7);
		*ret_v = v;
		*ret_bits = KY_MIN(shift + 7, 64u);
		return true;
	}
	return false;
}

static inline int decode_int(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	unsigned bits = n->size;
	uint64_t v;

	if (n->is_leb) {
		if (!read_leb(d, n->is_signed, &v, &bits))
			return -EBADMSG;
	} else {
		if (n->size > d->end - d->pos)
			return -EBADMSG;
		v = ky_read_int(d->data, d->pos, n);
		d->pos += n->size;
	}
	if (n->slot != KY_NO_SLOT)
		d->slots[n->slot] = v;
	if (n->role)
		set_role(d, n, v);
	if (n->is_clock)
		ky_move_clock(d, bits, v);
	return out ? emit_value(out, n, (struct ky_value){.u = v}) : 0;
}

static int decode_float(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	double v;

	if (n->size > d->end - d->pos)
		return -EBADMSG;
	v = ky_read_float(d->data, d->pos, n);
	d->pos += n->size;
	return emit_value(out, n, (struct ky_value){.f = v});
}

/* Returns the character 0 that ends a string, or NULL. */
static inline const char *find_nul(const char *text, size_t n, uint8_t encoding)
{
	size_t unit = ky_encoding_unit(encoding);

	if (ky_likely(encoding == KY_UTF_8))
		return memchr(text, 0, n);
	for (size_t i = 0; i + unit <= n; i += unit) {
		if (!memcmp(text + i, "\0\0\0", unit))
			return text + i;
	}
	return NULL;
}

static inline int decode_string(
	struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	const char *text, *nul;

	if (align(d, n) < 0)
		return -EBADMSG;
	text = (const char *)d->data + d->pos / 8;
	nul = find_nul(text, (d->end - d->pos) / 8, n->encoding);
	if (!nul)
		return -EBADMSG;
	d->pos += (uint64_t)((size_t)(nul - text) + ky_encoding_unit(n->encoding)) * 8;
	return out ? emit_value(out, n, (struct ky_value){.text = text, .n = nul - text}) : 0;
}

static __attribute__((noinline)) int decode_node(
	struct ky_decoder *d, const struct ky_node *n, struct ky_values *out);

uint64_t ky_text_length(const char *text, uint64_t count, uint8_t encoding)
{
	const char *nul = find_nul(text, count, encoding);

	return nul ? (uint64_t)(nul - text) : count;
}

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
	return out ? emit_value(out, n, ky_array_value(d->data, at, n, count)) : 0;
}

/* A field without bits costs work, but no bits. Refuses more of them than the budget allows. */
static int charge_empty(struct ky_decoder *d)
{
	if (!d->n_empty)
		return -EBADMSG;
	d->n_empty--;
	return 0;
}

static int decode_array(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	uint64_t count = n->kind == KY_NODE_SEQUENCE ? d->slots[n->from] : n->count;
	int r;

	if (count > d->end - d->pos + d->n_empty)
		return -EBADMSG;
	if (n->is_scalars)
		return decode_numbers(d, n, count, out);
	r = emit_value(out, n, (struct ky_value){.n = count});
	for (uint64_t i = 0; i < count && !r; i++) {
		uint64_t at = d->pos;

		r = decode_node(d, n->children, out);
		if (!r && d->pos == at)
			r = charge_empty(d);
	}
	return r;
}

static int decode_variant(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	const struct ky_segments *s = &n->choices->segments;
	const struct ky_segment *chosen = ky_segments_find(s, d->slots[n->from]);
	uint32_t option;
	int r;

	if (!chosen)
		return n->is_optional ? emit_value(out, n, (struct ky_value){.u = KY_NO_OPTION})
				      : -EBADMSG;
	option = n->choices->options[s->indexes[chosen->first]];
	r = emit_value(out, n, (struct ky_value){.u = option});
	return r ? r : decode_node(d, &n->children[option], out);
}

/* Decodes the members of a run from n on. */
static inline int decode_run(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	uint64_t at = ky_align_up(d->pos, 8), end = at + n->run_bits;
	const struct ky_node *last = n + n->n_run;
	int r = out ? reserve_values(out, n->n_run) : 0;

	if (at > d->end || n->run_bits > d->end - at)
		return -EBADMSG;
	if (r < 0)
		return r;
	for (; out && n < last; n++) {
		out->v[out->n++] = ky_flat_value(d->data, at, n);
		at += n->flat_bits;
	}
	d->pos = end;
	return 0;
}

static int decode_struct(struct ky_decoder *d, const struct ky_node *n, struct ky_values *out)
{
	int r = 0;

	for (const struct ky_node *c = n->children, *end = c + n->n; c < end && !r;) {
		if (c->n_run) {
			r = decode_run(d, c, out);
			c += c->n_run;
		} else if (c->kind == KY_NODE_STRING) {
			r = decode_string(d, c++, out);
		} else {
			uint64_t at = d->pos;

			if (ky_likely(c->kind == KY_NODE_INT))
				r = align(d, c) ? -EBADMSG
						: decode_int(d, c, c->is_shown ? out : NULL);
			else
				r = decode_node(d, c, out);
			c++;
			if (!r && d->pos == at)
				r = charge_empty(d);
		}
	}
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
	int r = align(d, scope);

	return r ? r : decode_struct(d, scope, scope->is_shown ? out : NULL);
}

/* On -EBADMSG, pos is at the scope's begin. */
static inline int skip_steps(struct ky_decoder *d, const struct ky_node *scope)
{
	const uint8_t *at, *end = d->data + d->end / 8;

	if (align(d, scope))
		return -EBADMSG;
	at = d->data + d->pos / 8;
	if (scope->step_bytes > (uint64_t)(end - at))
		return -EBADMSG;
	d->pos += scope->step_bytes * 8;
	if (scope->step_bytes)
		return 0;
	for (uint32_t i = 0; i < scope->n_steps; i++) {
		const struct ky_step *s = &scope->steps[i];
		const uint8_t *nul = s->bytes ? NULL : memchr(at, 0, (size_t)(end - at));

		if (s->bytes > (uint64_t)(end - at) || (!s->bytes && !nul))
			return -EBADMSG;
		at = nul ? nul + 1 : at + s->bytes;
	}
	d->pos = (uint64_t)(at - d->data) * 8;
	return 0;
}

int ky_decode_steps(struct ky_decoder *d, const struct ky_node *scope)
{
	int r = skip_steps(d, scope);

	if (ky_unlikely(r))
		ky_decode(d, scope, NULL);
	return r;
}
