/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/stream.h"

void stream_init(struct stream *s, struct source *source, struct sink_stream *to, uint64_t now_ns)
{
	*s = (struct stream){.source = source, .to = to, .slots.memory = source->resume};
	pace_init(&s->pace, now_ns);
}

void stream_deinit(struct stream *s)
{
	if (s->to)
		s->to->ops->close_stream(s->to);
	s->to = NULL;
}

void stream_account(const struct stream *s, struct stream_end *end, const struct ky_ctf_packet *p)
{
	end->begin = p->timestamp_begin;
	end->ts = p->timestamp_end;
	end->n_discarded = s->slots.base.chunk_discarded + p->events_discarded;
	end->n_events += p->n_events;
}

/* Returns the number of the next packet in the chunk. */
static uint64_t seq_num_of(const struct stream *s)
{
	return s->slots.base.n_packets + s->to->n_packets - s->slots.base.chunk_packets;
}

bool stream_has_packets(const struct stream *s)
{
	return seq_num_of(s) > 0;
}

uint64_t stream_count_discarded(const struct stream *s, const struct stream_end *end)
{
	return KY_MAX(end->n_discarded, s->source->n_lost + s->n_unwritten + s->n_of_others);
}

/* Sets the losses that a packet reports. n: events discarded since the session began. */
static void set_losses(const struct stream *s, struct ky_ctf_packet *p, uint64_t n)
{
	p->events_discarded = n - s->slots.base.chunk_discarded;
	if (p->events_discarded)
		p->lost_too_big = s->source->lost[KY_LOST_TOO_BIG] - s->slots.base.chunk_too_big;
}

/* Returns true if the file has room for a packet behind others that will be appended. */
static bool has_room(const struct stream *s, uint64_t others, uint64_t bytes)
{
	uint64_t size = s->to->size + others;

	return !s->to->max_size || !size || size + bytes <= s->to->max_size;
}

static int append_empty(struct stream *s, uint64_t ts, uint64_t n_discarded)
{
	static const uint8_t nothing[1];
	struct sink_packet packet = {.header = s->header, .data = nothing};
	struct ky_ctf_packet *p = &packet.header;
	int ret = 0;

	if (s->source->has_owner)
		p->owner = s->end.owner;
	p->position_begin = s->source->taken.pos;
	p->timestamp_begin = p->timestamp_end = ts;
	set_losses(s, p, n_discarded);
	p->seq_num = seq_num_of(s);
	ky_ctf_packet_finish(p, 0);
	if (!has_room(s, 0, sizeof(*p)))
		ret = stream_next_file(s);
	if (!ret)
		ret = s->to->ops->append(s->to, &packet, 1, 0);
	if (!ret)
		stream_account(s, &s->end, p);
	return ret;
}

/*
 * Units of a clock that are at least a nanosecond, the unit that babeltrace2 compares; see
 * begin_of().
 */
#define MOMENT 16u

/*
 * Appends the packet without losses that must precede a first packet with losses, which is not
 * before ts. It is earlier; see begin_of().
 */
static int append_base(struct stream *s, uint64_t ts)
{
	uint64_t none = s->slots.base.chunk_discarded;
	int ret;

	if (seq_num_of(s) || stream_count_discarded(s, &s->end) == none)
		return 0;
	ts = KY_MAX(ts, s->end.ts);
	ret = append_empty(s, KY_MAX(ts, MOMENT) - MOMENT, none);
	if (!ret)
		s->end.ts = ts;
	return ret;
}

/*
 * Returns the clock of the piece's first record, which is not before `from`; `from` if it has none.
 */
static uint64_t first_ts(const struct ky_drain_piece *piece, uint64_t from)
{
	const uint64_t mask = (UINT64_C(1) << KY_TS_BITS) - 1;
	uint64_t ts = from;
	uint32_t word;

	if (piece->len < sizeof(word))
		return from;
	memcpy(&word, piece->data, sizeof(word));
	if ((word & KY_ID_EXTENDED) != KY_ID_EXTENDED)
		return from + (((word >> KY_ID_BITS) - from) & mask);
	if (piece->len >= KY_HEADER_EXTENDED)
		memcpy(&ts, piece->data + KY_HEADER_EXTENDED - sizeof(ts), sizeof(ts));
	return ts;
}

/*
 * Returns the begin of a packet. If a stream has several files, babeltrace2 sorts packets by their
 * begin. It fails if two begin at once, because it takes them in any order. So each packet begins
 * later than the one before, and not before that ends. If the one before begins when it ends, as an
 * empty one does, this packet begins with its first record or, if it is empty, a moment later.
 */
static uint64_t begin_of(const struct stream_end *end, const struct ky_drain_piece *piece)
{
	uint64_t ts = KY_MAX(piece->begin_ts, end->ts);

	return ts == end->begin ? KY_MAX(ts, KY_MIN(first_ts(piece, ts), piece->end_ts)) : ts;
}

static uint64_t begin_of_empty(const struct stream *s, uint64_t ts)
{
	ts = KY_MAX(ts, s->end.ts);
	return ts + (ts == s->end.begin);
}

/*
 * Packets that are written in one go. Until the write has succeeded, the stream does not change:
 * `end` and `at` are where the packets and the source will be then.
 */
struct batch {
	struct source_mark at;
	struct stream_end end;
	struct sink_packet packets[SINK_BATCH];
	unsigned int n;
	uint64_t bytes;
	bool file_full; /* there is more, for the next file */
};

/*
 * Copies a thread's identity from the ring. A program writes its name: the copy has no bytes behind
 * its end, and none that move a terminal's cursor.
 */
static void copy_owner(struct ky_owner *to, const struct ky_owner *from)
{
	size_t n = strnlen(from->name, sizeof(from->name));

	*to = (struct ky_owner){.pid = from->pid, .tid = from->tid};
	for (size_t i = 0; i < n; i++)
		to->name[i] = (unsigned char)from->name[i] < ' ' || from->name[i] == 0x7f
				      ? '?'
				      : from->name[i];
}

/* Adds a piece to the batch. Returns false if the file has no room for it. */
static bool add_piece(struct batch *b, const struct stream *s, const struct ky_drain_piece *piece)
{
	struct sink_packet *packet = &b->packets[b->n];
	struct ky_ctf_packet *p = &packet->header;

	*packet = (struct sink_packet){.header = s->header, .data = piece->data, .len = piece->len};
	if (s->source->has_owner) {
		copy_owner(&b->end.owner, &piece->owner);
		p->owner = b->end.owner;
	}
	p->position_begin = piece->pos;
	p->n_events = piece->n_events;
	p->timestamp_begin = begin_of(&b->end, piece);
	p->timestamp_end = KY_MAX(piece->end_ts, p->timestamp_begin);
	set_losses(s, p, stream_count_discarded(s, &b->end));
	p->seq_num = seq_num_of(s) + b->n;
	ky_ctf_packet_finish(p, piece->len);
	if (stream_is_last_of_block(piece))
		ky_ctf_packet_pad(p, sink_padding(s->to->size + b->bytes, piece->len));
	if (!has_room(s, b->bytes, p->packet_bits / 8)) {
		b->file_full = true;
		return false;
	}
	stream_account(s, &b->end, p);
	b->n++;
	b->bytes += p->packet_bits / 8;
	return true;
}

/* Adds up to n_max packets, but no more than is worth one write. */
static void fill_batch(struct batch *b, const struct stream *s, bool flush, unsigned int n_max)
{
	struct source_mark at = b->at;
	struct ky_drain_piece piece;

	while (b->n < n_max && b->bytes < PACE_BATCH_BYTES &&
		s->source->ops->next(s->source, &at, flush, &piece)) {
		if (!add_piece(b, s, &piece))
			return;
		b->at = at;
	}
	b->at = at; /* behind the unused rest of a block */
}

/*
 * Appends the packet without losses before the first piece, if there is one: where the recording
 * began, if that is known and earlier.
 */
static int append_first_base(struct stream *s, bool flush)
{
	struct source_mark at = s->source->taken;
	struct ky_drain_piece piece;

	if (seq_num_of(s) || !s->source->ops->next(s->source, &at, flush, &piece))
		return 0;
	if (!s->source->taken.count && s->source->since && s->source->since < piece.begin_ts)
		return append_empty(s, s->source->since, s->slots.base.chunk_discarded);
	return append_base(s, piece.begin_ts);
}

/*
 * Returns true if the stream's last packet ends before the source does, and no record will follow
 * it: those for which the source had no room are earlier than its end.
 */
static bool ends_early(const struct stream *s)
{
	return seq_num_of(s) && !s->source->more && s->end.ts < s->source->until;
}

/* Appends what is only for losses or the end. All pieces are written. */
static int append_last(struct stream *s)
{
	int ret = stream_append_losses(s, 0);

	if (ret < 0 || !ends_early(s))
		return ret;
	return append_empty(s, s->source->until, s->end.n_discarded);
}

int stream_append_base(struct stream *s)
{
	return append_base(s, s->end.ts ? s->end.ts : s->since);
}

int stream_append_losses(struct stream *s, uint64_t until)
{
	uint64_t ts = s->end.ts ? s->end.ts : s->since;
	int ret;

	if (stream_count_discarded(s, &s->end) == s->end.n_discarded)
		return 0;
	ret = stream_append_base(s);
	ts = KY_MAX(ts, until);
	return ret < 0 ? ret
		       : append_empty(s, begin_of_empty(s, ts), stream_count_discarded(s, &s->end));
}

/*
 * Returns true if no record of the last look is left. Otherwise a packet that is only for losses
 * could begin later than the next record: the next packet reports them.
 */
static bool all_taken(const struct stream *s)
{
	return s->source->taken.pos == s->source->head || s->source->abandoned;
}

/* Returns true if all of the last look is written. */
static bool is_written(const struct stream *s)
{
	return all_taken(s) && stream_count_discarded(s, &s->end) == s->end.n_discarded &&
	       !ends_early(s);
}

int stream_look(struct stream *s, bool flush, uint64_t now_ns)
{
	struct source *source = s->source;
	uint64_t volume = source->volume;
	int ret = source->ops->look(source, flush, is_written(s));

	s->due = true; /* what was looked at before */
	if (ret == SOURCE_IDLE)
		s->due = flush && source->abandoned;
	if (ret)
		return ret;
	pace_measure(&s->pace, source, source->volume - volume, now_ns);
	s->due = flush || s->fault.error || pace_is_due(&s->pace, source) ||
		 (source->released && !is_written(s));
	return 0;
}

/* Writes the next n_max packets or fewer. Returns how many, or -errno. */
static int write_batch(struct stream *s, bool flush, unsigned int n_max)
{
	struct batch b;
	int ret = 0;

	b.at = s->source->taken;
	b.end = s->end;
	b.n = 0;
	b.bytes = 0;
	b.file_full = false;
	fill_batch(&b, s, flush, n_max);
	if (b.file_full && !b.n) {
		ret = stream_next_file(s);
		return ret < 0 ? ret : write_batch(s, flush, n_max);
	}
	if (b.n)
		ret = s->to->ops->append(s->to, b.packets, b.n, pace_spare_ns(&s->pace, s->source));
	if (ret < 0) /* a full disk may have room for the first */
		return b.n > 1 ? write_batch(s, flush, 1) : ret;
	s->end = b.end;
	s->source->ops->take(s->source, &b.at);
	return (int)b.n;
}

static int write_all(struct stream *s, bool flush)
{
	int ret = append_first_base(s, flush);

	if (ret < 0)
		return ret;
	do
		ret = write_batch(s, flush, SINK_BATCH);
	while (ret > 0);
	return !ret && flush && all_taken(s) ? append_last(s) : ret;
}

int stream_write(struct stream *s, bool flush, uint64_t now_ns)
{
	if (!s->due)
		return 0;
	if (!fault_may_try(&s->fault, flush, now_ns))
		return s->fault.error;
	return fault_set(&s->fault, write_all(s, flush || s->source->released), now_ns);
}

/* Adds n, up to the maximum: a program that overwrites its counts cannot reduce others' sums. */
static void add_lost(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

void stream_add_stats(const struct stream *s, struct ky_cons_stats *stats)
{
	const struct ky_resume_slot *base = &s->slots.base;
	const uint64_t *lost = s->source->lost;

	stats->recorded += s->end.n_events;
	add_lost(&stats->discarded, s->source->n_lost);
	add_lost(&stats->discarded_too_big, lost[KY_LOST_TOO_BIG]);
	add_lost(&stats->discarded_refused, lost[KY_LOST_REFUSED]);
	add_lost(&stats->discarded_no_slot, lost[KY_LOST_NO_SLOT]);
	add_lost(&stats->discarded_interrupted, lost[KY_LOST_STUCK]);
	stats->unwritten += s->n_unwritten;
	stats->bytes += base->n_bytes + s->to->size;
	stats->packets += base->n_packets + s->to->n_packets;
	stats->removed += base->removed;
	stats->cleared += base->cleared;
	stats->damaged += base->damaged;
}
