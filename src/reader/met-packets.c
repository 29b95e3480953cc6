/* SPDX-License-Identifier: MIT */
#include "reader/met-packets.h"

#define PIECE_SIZE ((size_t)64 << 10)
#define CAP_MIN	   ((size_t)16)

static struct ky_met_packet *place_of(const struct ky_met_packets *r, uint64_t number)
{
	return &r->v[number & (r->cap - 1)];
}

/* Doubles the places. Returns 0 or -ENOMEM. */
static int grow_places(struct ky_met_packets *r)
{
	struct ky_met_packets more = {.cap = r->cap ? 2 * r->cap : CAP_MIN, .n = r->n};

	more.v = calloc(more.cap, sizeof(*more.v));
	if (!more.v)
		return -ENOMEM;
	for (size_t i = 0; i < r->cap; i++) {
		if (r->v[i].n_bytes)
			*place_of(&more, r->v[i].number) = r->v[i];
	}
	free(r->v);
	*r = more;
	return 0;
}

/* Returns 1 if both have the same bytes, 0 if not or if they cannot be read, or -ENOMEM. */
static int compare_bytes(
	const struct ky_stream *s, const struct ky_met_packet *x, const struct ky_met_packet *y)
{
	char *pieces = malloc(2 * PIECE_SIZE);
	uint64_t at = 0;
	ssize_t n = 1;

	if (!pieces)
		return -ENOMEM;
	for (; at < x->n_bytes && n > 0; at += (uint64_t)n) {
		size_t want = (size_t)KY_MIN(x->n_bytes - at, (uint64_t)PIECE_SIZE);

		n = ky_file_read(&s->files[x->file], pieces, want, x->offset + at);
		if (n != (ssize_t)want ||
			n != ky_file_read(&s->files[y->file], pieces + PIECE_SIZE, want,
				     y->offset + at) ||
			memcmp(pieces, pieces + PIECE_SIZE, want) != 0)
			n = 0;
	}
	free(pieces);
	return n > 0;
}

int ky_met_packets_add(
	struct ky_met_packets *r, const struct ky_stream *s, const struct ky_met_packet *p)
{
	struct ky_met_packet *at = r->cap ? place_of(r, p->number) : NULL;

	if (at && at->number == p->number && at->n_bytes == p->n_bytes &&
		(at->file != p->file || at->offset != p->offset)) {
		int same = compare_bytes(s, at, p);

		if (same)
			return same;
	}
	if (r->n >= r->cap && r->cap < KY_MET_PACKETS_MAX && grow_places(r))
		return -ENOMEM;
	at = place_of(r, p->number);
	r->n += !at->n_bytes;
	*at = *p;
	return 0;
}

void ky_met_packets_deinit(struct ky_met_packets *r)
{
	free(r->v);
	*r = (struct ky_met_packets){0};
}
