/* SPDX-License-Identifier: MIT */
/* A stream's files and chunks, its begin after a restart, and its end. */
#include "consumerd/stream/stream.h"

/* Returns the present state of the stream, as the begin of another file. */
static struct ky_resume_slot present_slot(const struct stream *s)
{
	struct ky_resume_slot slot = s->slots.base;

	slot.pos = s->source->taken.pos;
	slot.count = s->source->taken.count;
	slot.ts = s->end.ts;
	slot.discarded = s->end.n_discarded;
	slot.n_packets += s->to->n_packets;
	slot.n_bytes += s->to->size;
	return slot;
}

/* Begins the file that the slot in use describes. */
static void begin_file(struct stream *s)
{
	s->end.ts = s->slots.base.ts;
	s->end.n_discarded = s->slots.base.discarded;
	s->end.n_events = s->slots.base.count;
	s->to->ops->begin_file(s->to, s->slots.base.file);
}

static void store_and_begin(struct stream *s, const struct ky_resume_slot *next)
{
	slots_store(&s->slots, next);
	slots_enter(&s->slots);
	begin_file(s);
}

/*
 * Removes the oldest file, after it counted its events. If the consumer dies between the two, its
 * successor removes the same file again.
 */
static void remove_oldest(struct stream *s)
{
	uint64_t max = s->to->max_files;

	if (max && s->slots.base.file >= max)
		s->to->ops->remove(s->to, s->slots.base.file - max);
}

int stream_next_file(struct stream *s)
{
	struct ky_resume_slot next = present_slot(s);
	uint64_t max = s->to->max_files, n = 0;
	int ret = 0;

	next.file++;
	if (max && next.file >= max)
		ret = s->to->ops->count(s->to, next.file - max, &n);
	if (ret < 0)
		return ret;
	next.kept_from += n;
	next.removed += n;
	store_and_begin(s, &next);
	remove_oldest(s);
	return 0;
}

uint64_t stream_size_after(const struct stream *s, uint64_t ts)
{
	struct source_mark at = s->source->taken;
	struct ky_drain_piece piece;
	uint64_t size = 0, n;

	while (s->source->ops->next(s->source, &at, true, &piece)) {
		n = sizeof(s->header) + piece.len;
		if (piece.end_ts > ts)
			size += stream_is_last_of_block(&piece) ? ky_align_up(n, KY_CTF_PAGE) : n;
	}
	n = s->source->ops->size_after ? s->source->ops->size_after(s->source, ts) : 0;
	return size + n + (n / s->source->block_size + !!n) * KY_CTF_PAGE;
}

uint64_t stream_leave_out(struct stream *s, uint64_t ts)
{
	struct source_mark at = s->source->taken, behind = at;
	uint64_t n = at.count;
	struct ky_drain_piece piece;

	while (s->source->ops->next(s->source, &behind, true, &piece) && piece.end_ts <= ts)
		at = behind;
	s->source->ops->take(s->source, &at);
	n = at.count - n;
	if (s->source->ops->leave_out)
		n += s->source->ops->leave_out(s->source, ts);
	return n;
}

/* Sets the chunk's files before the slot's apart, if the slot says so; again after a restart. */
static int set_files_apart(const struct stream *s)
{
	uint64_t end = KY_MAX(s->slots.base.given_up, 1u) - 1, first = 0;
	int ret = 0, r;

	if (!s->to->max_size)
		end = KY_MIN(end, 1u); /* one file, without a number */
	else if (s->to->max_files)
		first = end - KY_MIN(end, s->to->max_files);
	for (; first < end; first++) {
		r = s->to->ops->set_apart(s->to, first);
		ret = ret ? ret : r;
	}
	return ret;
}

/*
 * Stores the slot first, which has the number of files to move: if the consumer dies before it has
 * moved them, its successor does.
 */
int stream_set_apart(struct stream *s, uint64_t clock_now, bool alone)
{
	struct ky_resume_slot next;

	s->source->ops->abandon(s->source, false);
	if (alone)
		s->n_unwritten = 0;
	next = present_slot(s);
	next.file++;
	next.given_up = stream_has_packets(s) ? 1 + next.file : 1;
	if (s->to->ops->keeps) {
		next.damaged += stream_kept(s);
		next.kept_from = next.count;
	}
	/* The next file, which is not damaged, reports the losses of these files again. */
	next.chunk_packets = next.n_packets;
	next.discarded = next.chunk_discarded;
	next.ts = 0;
	s->since = clock_now;
	s->end.begin = 0;
	store_and_begin(s, &next);
	return set_files_apart(s);
}

/* A full disk often has room for one packet: then the trace itself reports the losses. */
void stream_give_up(struct stream *s, uint64_t clock_now)
{
	int ret = 0;

	s->n_unwritten += source_n_left(s->source);
	/* before the source is taken: a first packet begins where the losses begin */
	if (stream_count_unreported(s))
		ret = stream_append_base(s);
	s->source->taken.pos = s->source->head; /* and writers get no room for more */
	if (!ret)
		stream_append_losses(s, clock_now);
}

uint64_t stream_count_unreported(const struct stream *s)
{
	return stream_count_discarded(s, &s->end) - s->end.n_discarded;
}

int stream_report_for_others(struct stream *s, uint64_t n, uint64_t clock_now)
{
	int ret;

	s->n_of_others += n;
	ret = stream_append_losses(s, clock_now);
	if (ret < 0)
		s->n_of_others -= n;
	return ret;
}

struct resumed {
	struct stream *s;
	uint64_t position_end; /* of the last packet */
};

static void visit_packet(void *context, const struct ky_ctf_packet *p)
{
	struct resumed *resumed = context;

	resumed->position_end = ky_ctf_packet_end(p);
	stream_account(resumed->s, &resumed->s->end, p);
}

int stream_resume(struct stream *s, uint64_t chunk)
{
	struct resumed resumed = {.s = s};
	struct source_mark stored;
	int ret = 0;

	slots_resume(&s->slots, chunk);
	begin_file(s);
	resumed.position_end = s->slots.base.pos;
	if (s->slots.base.given_up)
		ret = set_files_apart(s);
	if (ret < 0)
		return ret;
	remove_oldest(s);
	ret = s->to->ops->resume(s->to, &s->header, visit_packet, &resumed);
	s->end.ts = KY_MAX(
		s->end.ts, s->slots.base.ts); /* a packet without losses begins earlier */
	if (ret == SINK_NO_POSITION) {
		ret = s->source->ops->resume(s->source, NULL);
		s->end.n_events = s->source->taken.count;
	} else if (!ret) {
		stored = (struct source_mark){resumed.position_end, s->end.n_events, s->end.ts};
		ret = s->source->ops->resume(s->source, &stored);
	}
	if (ret < 0)
		begin_file(s); /* nothing is appended to another's file */
	else if (s->slots.base.given_up)
		s->source->ops->abandon(s->source, true);
	return ret;
}

/* Begins a new chunk behind the records that were published before the last look. */
static void drop_published(const struct stream *s, struct ky_resume_slot *slot)
{
	struct source_mark at = s->source->taken;
	struct ky_drain_piece piece;

	while (s->source->ops->next(s->source, &at, true, &piece))
		;
	slot->pos = at.pos;
	slot->count = at.count;
	slot->ts = KY_MAX(at.ts, s->end.ts);
	slot->discarded = stream_count_discarded(s, &s->end);
	slot->cleared += slot->count - slot->kept_from;
}

void stream_prepare(struct stream *s, uint64_t chunk, bool drop)
{
	struct ky_resume_slot next = present_slot(s);

	if (!s->source->head && !stream_count_discarded(s, &s->end))
		return; /* never used */
	if (drop)
		drop_published(s, &next);
	next.chunk = chunk;
	next.file = 0;
	next.chunk_packets = next.n_packets;
	next.chunk_discarded = next.discarded;
	next.chunk_too_big = s->source->lost[KY_LOST_TOO_BIG];
	next.kept_from = next.count;
	next.given_up = !!next.given_up;
	slots_store(&s->slots, &next);
}

void stream_enter(struct stream *s, uint64_t chunk)
{
	const struct ky_resume_slot *base = &s->slots.base;
	struct source_mark begin;

	if (!slots_have(&s->slots, chunk))
		return;
	slots_enter(&s->slots);
	begin_file(s);
	begin = (struct source_mark){base->pos, base->count, base->ts};
	s->source->ops->take(s->source, &begin);
}

uint64_t stream_kept(const struct stream *s)
{
	return s->end.n_events - KY_MIN(s->slots.base.kept_from, s->end.n_events);
}
