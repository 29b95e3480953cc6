/* SPDX-License-Identifier: MIT */
#include "reader/stream.h"

static bool has_magic(const struct ky_decoder *d)
{
	return !ky_has_role(d, KY_ROLE_MAGIC) || d->role[KY_ROLE_MAGIC] == KY_PACKET_MAGIC;
}

static bool has_uuid(const struct ky_decoder *d, const struct ky_trace *trace)
{
	const struct ky_tsdl *t = &trace->tsdl;

	return !ky_has_role(d, KY_ROLE_UUID) || !t->has_uuid || trace->ignores_uuid ||
	       d->role[KY_ROLE_UUID] % 8 ||
	       !memcmp(d->data + d->role[KY_ROLE_UUID] / 8, t->uuid, sizeof(t->uuid));
}

static int refuse_head(struct ky_packet_head *p, enum ky_head_fault fault)
{
	p->fault = fault;
	return -EBADMSG;
}

/* file_bits: from the packet to the end of its file. */
static int check_sizes(struct ky_packet_head *p, const struct ky_decoder *d, uint64_t file_bits)
{
	p->packet_bits = file_bits;
	p->content_bits = file_bits;
	if (ky_has_role(d, KY_ROLE_CONTENT_SIZE))
		p->packet_bits = p->content_bits = d->role[KY_ROLE_CONTENT_SIZE];
	if (ky_has_role(d, KY_ROLE_PACKET_SIZE)) {
		p->packet_bits = d->role[KY_ROLE_PACKET_SIZE];
		if (!ky_has_role(d, KY_ROLE_CONTENT_SIZE))
			p->content_bits = p->packet_bits;
	}
	if (p->content_bits <= p->packet_bits - p->packet_bits % 8)
		p->packet_bits -= p->packet_bits % 8;
	else if (p->packet_bits < UINT64_MAX - 8)
		p->packet_bits = ky_align_up(p->packet_bits, 8);
	return p->packet_bits && p->packet_bits % 8 == 0 && p->content_bits <= p->packet_bits &&
			       d->pos <= p->content_bits
		       ? 0
		       : -EBADMSG;
}

int ky_packet_head_decode(struct ky_packet_head *ret, struct ky_decoder *d, const struct ky_file *f,
	uint64_t file_bits, struct ky_values *context)
{
	const struct ky_layout *l = &f->trace->layout;
	int r = 0;

	d->pos = 0;
	d->have = 0;
	if (l->packet_header)
		r = ky_decode(d, l->packet_header, NULL);
	ret->fault = KY_HEAD_UNREADABLE;
	if (!has_magic(d))
		return refuse_head(ret, KY_HEAD_MAGIC);
	if (r < 0)
		return r;
	if (!has_uuid(d, f->trace))
		return refuse_head(ret, KY_HEAD_UUID);
	ret->class = ky_has_role(d, KY_ROLE_STREAM_ID)
			     ? ky_layout_stream(l, d->role[KY_ROLE_STREAM_ID])
		     : l->n_streams ? &l->streams[0]
				    : NULL;
	if (!ret->class)
		return refuse_head(ret, KY_HEAD_CLASS);
	if (context) {
		context->n = 0;
		context->max = KY_MAX_VALUES;
	}
	if (ret->class->packet_context)
		r = ky_decode(d, ret->class->packet_context, context);
	return r ? r : check_sizes(ret, d, file_bits);
}

/* Kymo's position_begin, which lies in a gap between fields (docs/trace-format.md, "Packet"). */
#define POSITION_BEGIN 56
#define CONTEXT_END    128
#define GAP_ALIGN      256 /* bits: of the field behind the gap */

/* Copies by other programs have other packets, although their metadata names Kymo. */
static bool has_gap(const struct ky_stream_class *c)
{
	const struct ky_node *context = c->packet_context;

	for (uint32_t i = 0; context && i < context->n; i++) {
		if (context->children[i].role == KY_ROLE_TIMESTAMP_BEGIN)
			return context->children[i].align == GAP_ALIGN;
	}
	return false;
}

uint64_t ky_packet_position(
	const struct ky_trace *t, const struct ky_stream_class *c, const struct ky_decoder *d)
{
	uint64_t position = 0;

	if (t->is_kymo && has_gap(c) && d->end / 8 >= CONTEXT_END)
		memcpy(&position, d->data + POSITION_BEGIN, sizeof(position));
	return position;
}

void ky_file_probe(struct ky_file *f, const uint8_t *data, size_t n)
{
	struct ky_decoder d = {.data = data, .end = n * 8, .n_empty = n * 8};
	struct ky_packet_head p = {0};

	d.slots = calloc(f->trace->layout.n_slots + 1, sizeof(*d.slots));
	if (d.slots && !ky_packet_head_decode(&p, &d, f, f->size * 8, NULL)) {
		f->class = p.class;
		f->has_instance = ky_has_role(&d, KY_ROLE_INSTANCE_ID);
		f->instance = d.role[KY_ROLE_INSTANCE_ID];
		f->begin = d.role[KY_ROLE_TIMESTAMP_BEGIN];
		f->position = ky_packet_position(f->trace, p.class, &d);
		f->is_cut = f->position || ky_role_or(&d, KY_ROLE_PACKET_SEQ, 0);
	}
	f->fault = p.fault;
	free(d.slots);
}

ssize_t ky_file_read(struct ky_file *f, void *to, size_t n, uint64_t offset)
{
	if (!f->data)
		return ky_handle_read(&f->handle, f->files, f->path, to, n, offset);
	n = offset < f->size ? KY_MIN(n, f->size - offset) : 0;
	memcpy(to, f->data + offset, n);
	return (ssize_t)n;
}

bool ky_stream_is_cut(const struct ky_stream *s, int64_t *ret_ns)
{
	const struct ky_file *f = &s->files[0];

	if (!f->is_cut || s->continues)
		return false;
	*ret_ns = ky_stream_class_ns(f->class, f->begin);
	return true;
}

bool ky_stream_is_of_thread(const struct ky_stream *s)
{
	const struct ky_stream_class *c = s->files[0].class;
	const struct ky_node *context = c ? c->packet_context : NULL;

	for (uint32_t i = 0; context && i < context->n; i++) {
		if (!strcmp(context->children[i].full_name, "vtid"))
			return true;
	}
	return false;
}

static void deinit_file(struct ky_file *f)
{
	ky_handle_deinit(&f->handle, f->files);
	free(f->path);
	*f = (struct ky_file){0};
}

void ky_stream_deinit(struct ky_stream *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		deinit_file(&s->files[i]);
	free(s->files);
	free(s->places);
	*s = (struct ky_stream){0};
}
