/* SPDX-License-Identifier: MIT */
#include "consumerd/stream.h"

void stream_deinit(struct stream *s)
{
	stream_file_deinit(&s->file);
}

static void tell_writers(struct stream *s)
{
	if (__atomic_load_n(s->consumed, __ATOMIC_RELAXED) == s->drain.pos)
		return;
	/* Pairs with the writers' acquire: they overwrite only what we have read. */
	__atomic_store_n(s->consumed, s->drain.pos, __ATOMIC_RELEASE);
}

static int append(struct stream *s, const struct stream_place *place, struct ky_ctf_packet *p,
	const void *data, uint32_t len)
{
	int ret = 0;

	p->seq_num = s->file.n_packets;
	ky_ctf_packet_finish(p, len);
	if (place->dir >= 0)
		ret = stream_file_append(&s->file, place, p, data, len);
	if (ret < 0)
		return ret;
	s->ts = p->timestamp_end;
	s->n_discarded = p->events_discarded;
	s->n_events += p->n_events;
	return 0;
}

static int append_empty(
	struct stream *s, const struct stream_place *place, uint64_t ts, uint64_t n_discarded)
{
	struct ky_ctf_packet p = s->header;

	p.position_begin = p.position_end = s->drain.pos;
	p.timestamp_begin = p.timestamp_end = KY_MAX(ts, s->ts);
	p.events_discarded = n_discarded;
	if (n_discarded)
		p.lost_too_big = s->drain.lost[KY_LOST_TOO_BIG];
	return append(s, place, &p, NULL, 0);
}

/* Losses so far; never less than a packet has told already. */
static uint64_t count_discarded(const struct stream *s)
{
	return KY_MAX(s->n_discarded, ky_drain_lost(&s->drain) + s->n_unwritten);
}

/* The packet without losses that a first packet with losses needs before it. */
static int append_base(struct stream *s, const struct stream_place *place, uint64_t ts)
{
	if (s->file.n_packets || place->dir < 0 || !count_discarded(s))
		return 0;
	return append_empty(s, place, ts, 0);
}

static int append_piece(
	struct stream *s, const struct stream_place *place, const struct ky_drain_piece *piece)
{
	struct ky_ctf_packet p = s->header;
	int ret = append_base(s, place, piece->begin_ts);

	if (ret < 0)
		return ret;
	p.position_begin = piece->pos;
	p.position_end = piece->pos + piece->len;
	p.n_events = piece->n_events;
	p.lost_too_big = s->drain.lost[KY_LOST_TOO_BIG];
	p.timestamp_begin = KY_MAX(piece->begin_ts, s->ts);
	p.timestamp_end = KY_MAX(piece->end_ts, p.timestamp_begin);
	p.events_discarded = count_discarded(s);
	return append(s, place, &p, piece->data, piece->len);
}

/* Losses that no packet tells yet get a packet of their own. */
static int append_losses(struct stream *s, const struct stream_place *place)
{
	uint64_t ts = s->file.n_packets ? s->ts : s->since;
	int ret;

	if (count_discarded(s) == s->n_discarded)
		return 0;
	ret = append_base(s, place, ts);
	return ret < 0 ? ret : append_empty(s, place, ts, count_discarded(s));
}

bool stream_look(struct stream *s, bool flush)
{
	return ky_drain_look(&s->drain, flush) == 0;
}

static int write_pieces(struct stream *s, const struct stream_place *place, bool flush)
{
	struct ky_drain_piece piece;
	int ret, n = 0;

	for (; ky_drain_next(&s->drain, flush, &piece); n = 1) {
		ret = append_piece(s, place, &piece);
		if (ret < 0)
			return ret;
		ky_drain_take(&s->drain, &piece);
		tell_writers(s);
	}
	tell_writers(s);
	ret = flush ? append_losses(s, place) : 0;
	return ret < 0 ? ret : n;
}

int stream_write(struct stream *s, const struct stream_place *place, bool flush, uint64_t now_ns)
{
	int ret;

	if (!fault_may_try(&s->fault, flush, now_ns))
		return s->fault.error;
	ret = write_pieces(s, place, flush);
	fault_set(&s->fault, KY_MIN(ret, 0), now_ns);
	return ret;
}

void stream_give_up(struct stream *s, const struct stream_place *place)
{
	uint64_t max = (s->drain.head - s->drain.pos) / KY_HEADER_COMPACT;

	if (s->drain.settled && s->drain.head_count > s->drain.count)
		s->n_unwritten += KY_MIN(s->drain.head_count - s->drain.count, max);
	s->drain.pos = s->drain.head;
	/* A full disk has often room for this much: then the trace itself tells. */
	if (place->dir >= 0)
		append_losses(s, place);
}

struct last {
	struct stream *s;
	uint64_t position_end; /* of the last packet */
};

static void visit_packet(void *context, const struct ky_ctf_packet *p)
{
	struct last *last = context;
	struct stream *s = last->s;

	last->position_end = p->position_end;
	s->ts = p->timestamp_end;
	s->n_discarded = p->events_discarded;
	s->n_events += p->n_events;
}

/*
 * Where to go on after a last packet that ended at `end`: there, or at the next block, when the
 * dead consumer had found nothing more in that block and told the writers.
 */
static uint64_t resume_position(const struct stream *s, uint64_t end)
{
	uint64_t consumed = __atomic_load_n(s->consumed, __ATOMIC_RELAXED);
	uint64_t next = (end / s->drain.block_size + 1) * s->drain.block_size;

	return consumed == next ? next : end;
}

int stream_resume(struct stream *s, const struct stream_place *place)
{
	struct last last = {.s = s};
	uint64_t pos;
	int ret;

	if (place->dir < 0) {
		ret = ky_drain_rejoin(&s->drain, __atomic_load_n(s->consumed, __ATOMIC_RELAXED));
		s->n_events = s->drain.count;
		return ret;
	}
	ret = stream_file_resume(&s->file, place, &s->header, visit_packet, &last);
	if (ret < 0)
		return ret;
	pos = resume_position(s, last.position_end);
	return ky_drain_resume(&s->drain, pos, s->n_events, s->ts);
}
