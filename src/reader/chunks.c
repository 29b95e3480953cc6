/* SPDX-License-Identifier: MIT */
#include "reader/chunks.h"

#include "reader/index.h"
#include "reader/walk-packets.h"
#include "reader/walk.h"

#define NUMBER_SIZE 4	 /* last bytes of the UUID, which the number of the chunk changes */
#define BLOCK_MIN   4096 /* blocks of rings have at least this size, a power of two */

bool ky_chunks_are_of_session(const struct ky_trace *x, const struct ky_trace *y)
{
	bool are_kymo = x->is_kymo && y->is_kymo;
	size_t n = sizeof(x->tsdl.uuid) - (are_kymo ? NUMBER_SIZE : 0);

	return x->tsdl.has_uuid && y->tsdl.has_uuid && !memcmp(x->tsdl.uuid, y->tsdl.uuid, n);
}

static int compare_times(uint64_t x, uint64_t y)
{
	return (x > y) - (x < y);
}

/* 0: streams of the same ring. */
static int compare_rings(const struct ky_file *x, const struct ky_file *y)
{
	int c = compare_times(x->trace->group, y->trace->group);

	if (!c)
		c = compare_times(
			x->class ? x->class->id : UINT64_MAX, y->class ? y->class->id : UINT64_MAX);
	return c ? c : compare_times(x->instance, y->instance);
}

static int compare_begins(const void *a, const void *b)
{
	const struct ky_file *x = (*(struct ky_stream *const *)a)->files;
	const struct ky_file *y = (*(struct ky_stream *const *)b)->files;
	int c = compare_rings(x, y);

	return c ? c : compare_times(x->begin, y->begin);
}

/* The last packet of a stream, as far as it shows which packet follows. */
struct last_packet {
	uint64_t position_end; /* in the ring */
	uint64_t begin, end;   /* clock */
};

/* Returns 0, -ENODATA if the last packet cannot be read, or -ENOMEM. */
static int read_last(struct last_packet *ret, struct ky_stream *s, struct ky_packets *packets)
{
	const struct ky_select all = KY_SELECT_ALL;
	struct ky_packet_head p;
	struct ky_walk w;
	int r = s->has_index ? 0 : ky_index_build(s, false, packets);

	if (r || !s->has_packets)
		return r ? r : -ENODATA;
	ky_walk_init(&w, s, &all, packets, NULL);
	r = ky_walk_peek(&w, s->last_file, s->last_offset, &p);
	if (!r)
		*ret = (struct last_packet){
			.position_end = ky_packet_position(
						s->files[s->last_file].trace, p.class, &w.d) +
					(p.content_bits - w.d.pos) / 8,
			.begin = ky_role_or(&w.d, KY_ROLE_TIMESTAMP_BEGIN, 0),
			.end = ky_role_or(&w.d, KY_ROLE_TIMESTAMP_END, 0)};
	ky_walk_deinit(&w);
	return r == -EBADMSG ? -ENODATA : r;
}

/*
 * Returns true if the ring had no record between the packet and the file. If the file begins in a
 * later block, the positions differ by what the block could not hold. Then the clocks must agree:
 * the file begins when the packet ends or, if that is also the packet's begin, with its own first
 * record.
 */
static bool is_next(const struct last_packet *p, const struct ky_file *f)
{
	if (f->position == p->position_end)
		return true;
	return f->position > p->position_end && f->position % BLOCK_MIN == 0 &&
	       (f->begin <= p->end || p->begin == p->end);
}

static int connect_to(struct ky_stream *s, struct ky_stream *before, struct ky_packets *packets)
{
	struct last_packet last;
	int r = read_last(&last, before, packets);

	s->continues = !r && is_next(&last, &s->files[0]);
	return r == -ENOMEM ? r : 0;
}

int ky_chunks_connect(struct ky_stream *const *streams, size_t n)
{
	struct ky_stream **v = calloc(n + 1, sizeof(struct ky_stream *));
	struct ky_packets packets = {0};
	int r = v ? 0 : -ENOMEM;

	if (v && n)
		memcpy(v, streams, n * sizeof(struct ky_stream *));
	if (v)
		qsort(v, n, sizeof(struct ky_stream *), compare_begins);
	for (size_t i = 1; i < n && !r; i++) {
		const struct ky_file *f = v[i]->files, *before = v[i - 1]->files;

		if (f->position && !v[i]->continues && !compare_rings(f, before))
			r = connect_to(v[i], v[i - 1], &packets);
	}
	ky_packets_deinit(&packets);
	free(v);
	return r;
}

/* The last packet that the files up to here have. */
struct reached {
	bool is_known;
	uint64_t number, begin; /* clock */
};

/* True if an earlier file has the packet whose head was decoded. Else it is the last one now. */
static bool is_repeated(struct reached *r, const struct ky_decoder *d)
{
	uint64_t number = ky_role_or(d, KY_ROLE_PACKET_SEQ, 0);
	uint64_t begin = ky_role_or(d, KY_ROLE_TIMESTAMP_BEGIN, 0);

	if (r->is_known && number <= r->number && begin <= r->begin)
		return true;
	*r = (struct reached){true, number, begin};
	return false;
}

/* Reads the heads of the packets of a file. */
static int skip_repeated(struct ky_walk *w, size_t file, struct reached *r)
{
	struct ky_file *f = &w->stream->files[file];
	struct ky_packet_head p;
	uint64_t offset = 0;
	int e = 0;

	while (offset < f->size) {
		e = ky_walk_peek(w, file, offset, &p);
		if (e)
			break;
		if (is_repeated(r, &w->d) && f->first == offset)
			f->first = KY_MIN(offset + p.packet_bits / 8, f->size);
		offset += p.packet_bits / 8;
	}
	return e == -ENOMEM ? e : 0;
}

int ky_chunks_skip_repeated(struct ky_stream *s, struct ky_packets *packets)
{
	const struct ky_stream_class *class = s->files[0].class;
	const struct ky_select all = KY_SELECT_ALL;
	struct reached reached = {0};
	struct ky_walk w;
	int e = 0;

	if (s->files[0].trace == s->files[s->n_files - 1].trace || s->files[0].trace->is_kymo ||
		!class || !class->seq_bits || !class->begin_bits)
		return 0;
	ky_walk_init(&w, s, &all, packets, NULL);
	for (size_t i = 0; i < s->n_files && !e; i++)
		e = skip_repeated(&w, i, &reached);
	ky_walk_deinit(&w);
	return e;
}
