/* SPDX-License-Identifier: MIT */
#include "consumerd/stream.h"

#include "svc/loop.h"

/* A batch worth waiting for: a write that bypasses the page cache costs as much as 500 KB in it. */
#define BATCH_BYTES (1u << 20)
/* Below this, writing into the page cache costs less. */
#define DIRECT_BYTES (1u << 18)
/* A ring that fills in less time does not wait: the disk takes half a millisecond or more. */
#define CALM_NS (4 * KY_NS_PER_MS)
/* A slow disk rests this many times as long as its last write took. */
#define SLOW_DISK_REST 32

void stream_init(struct stream *s, uint64_t now_ns)
{
	stream_file_init(&s->file);
	s->looked_ns = now_ns;
	s->fill_ns = CALM_NS;
	s->drained = UINT64_MAX;
}

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

/* Accounts for the stream's next packet, which is in the file, or need not be. */
static void note(struct stream *s, const struct ky_ctf_packet *p)
{
	s->begin = p->timestamp_begin;
	s->ts = p->timestamp_end;
	s->n_discarded = s->base.chunk_discarded + p->events_discarded;
	s->n_events += p->n_events;
}

/* Returns the number of the next packet in the chunk. */
static uint64_t seq_num(const struct stream *s)
{
	return s->base.n_packets + s->file.n_packets - s->base.chunk_packets;
}

bool stream_has_packets(const struct stream *s)
{
	return seq_num(s) > 0;
}

/* Sets the losses that a packet reports. n: events discarded since the session began. */
static void tell_losses(const struct stream *s, struct ky_ctf_packet *p, uint64_t n)
{
	p->events_discarded = n - s->base.chunk_discarded;
	if (p->events_discarded)
		p->lost_too_big = s->drain.lost[KY_LOST_TOO_BIG] - s->base.chunk_too_big;
}

/* Returns the present state of the stream, as the begin of another file. */
static struct ky_resume_slot here(const struct stream *s)
{
	struct ky_resume_slot slot = s->base;

	slot.pos = s->drain.pos;
	slot.count = s->drain.count;
	slot.ts = s->ts;
	slot.discarded = s->n_discarded;
	slot.n_packets += s->file.n_packets;
	slot.n_bytes += s->file.size;
	return slot;
}

/* Stores the state in the slot that is not in use. It is valid after the last store. */
static void keep(struct stream *s, const struct ky_resume_slot *slot)
{
	struct ky_resume_slot *to = &s->resume->slots[!s->slot], invalid = *slot;

	invalid.chunk = KY_RESUME_INVALID;
	__atomic_store_n(&to->chunk, KY_RESUME_INVALID, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*to = invalid;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&to->chunk, slot->chunk, __ATOMIC_RELAXED);
}

/* Begins the file that a valid slot describes. */
static void take_slot(struct stream *s, unsigned int slot)
{
	s->slot = slot;
	s->base = s->resume->slots[slot];
	s->ts = s->base.ts;
	s->n_discarded = s->base.discarded;
	s->n_events = s->base.count;
	stream_file_switch(&s->file, s->base.file);
}

/*
 * Removes the oldest file, after it counted its events. If the consumer dies between the two, its
 * successor removes the same file again.
 */
static void remove_oldest(struct stream *s, const struct stream_place *place)
{
	if (place->max_files && s->base.file >= place->max_files)
		stream_file_remove(place, s->base.file - place->max_files);
}

/*
 * Begins the next file. Returns 0, or -errno if the events to be removed cannot be counted: then
 * the present file continues until another try.
 */
static int next_file(struct stream *s, const struct stream_place *place)
{
	struct ky_resume_slot next = here(s);
	uint64_t n = 0;
	int ret = 0;

	next.file++;
	if (place->max_files && next.file >= place->max_files)
		ret = stream_file_count(place, next.file - place->max_files, &n);
	if (ret < 0)
		return ret;
	next.kept_from += n;
	next.removed += n;
	keep(s, &next);
	take_slot(s, !s->slot);
	remove_oldest(s, place);
	return 0;
}

/* Returns true if the file has room for a packet behind others that will be appended. */
static bool has_room(
	const struct stream *s, const struct stream_place *place, uint64_t others, uint64_t bytes)
{
	uint64_t size = s->file.size + others;

	return !place->max_size || !size || size + bytes <= place->max_size;
}

static int append_empty(
	struct stream *s, const struct stream_place *place, uint64_t ts, uint64_t n_discarded)
{
	static const uint8_t nothing[1];
	struct stream_packet packet = {.header = s->header, .data = nothing};
	struct ky_ctf_packet *p = &packet.header;
	int ret = 0;

	p->position_begin = s->drain.pos;
	p->timestamp_begin = p->timestamp_end = ts;
	tell_losses(s, p, n_discarded);
	p->seq_num = seq_num(s);
	ky_ctf_packet_finish(p, 0);
	if (!has_room(s, place, 0, sizeof(*p)))
		ret = next_file(s, place);
	if (!ret && place->dir >= 0)
		ret = stream_file_append(&s->file, place, &packet, 1, false);
	if (!ret)
		note(s, p);
	return ret;
}

/* Returns the losses so far; never less than a packet has reported. */
static uint64_t count_discarded(const struct stream *s)
{
	return KY_MAX(s->n_discarded, ky_drain_lost(&s->drain) + s->n_unwritten);
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
static int append_base(struct stream *s, const struct stream_place *place, uint64_t ts)
{
	uint64_t none = s->base.chunk_discarded;
	int ret;

	if (seq_num(s) || place->dir < 0 || count_discarded(s) == none)
		return 0;
	ts = KY_MAX(ts, s->ts);
	ret = append_empty(s, place, KY_MAX(ts, MOMENT) - MOMENT, none);
	if (!ret)
		s->ts = ts;
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
static uint64_t begin_of(const struct stream *s, const struct ky_drain_piece *piece)
{
	uint64_t ts = KY_MAX(piece->begin_ts, s->ts);

	return ts == s->begin ? KY_MAX(ts, KY_MIN(first_ts(piece, ts), piece->end_ts)) : ts;
}

static uint64_t begin_of_empty(const struct stream *s, uint64_t ts)
{
	ts = KY_MAX(ts, s->ts);
	return ts + (ts == s->begin);
}

/*
 * Packets that are written in one go. `after` is the stream's state afterwards: until the write has
 * succeeded, the stream itself does not change.
 */
struct batch {
	struct stream after;
	struct stream_packet packets[STREAM_FILE_BATCH];
	unsigned int n;
	uint64_t bytes;
	bool file_full; /* there is more, for the next file */
};

static bool is_last_of_block(const struct ky_drain_piece *piece)
{
	return piece->next != piece->pos + piece->len;
}

/*
 * Copies a thread's identity from the ring. A program writes its name: the copy has no bytes behind
 * its end, and none that move a terminal's cursor.
 */
static void take_owner(struct ky_owner *to, const struct ky_owner *from)
{
	size_t n = strnlen(from->name, sizeof(from->name));

	*to = (struct ky_owner){.pid = from->pid, .tid = from->tid};
	for (size_t i = 0; i < n; i++)
		to->name[i] = (unsigned char)from->name[i] < ' ' || from->name[i] == 0x7f
				      ? '?'
				      : from->name[i];
}

/* Adds a piece to the batch. Returns false if the file has no room for it. */
static bool add_piece(
	struct batch *b, const struct stream_place *place, const struct ky_drain_piece *piece)
{
	struct stream *s = &b->after;
	struct stream_packet *packet = &b->packets[b->n];
	struct ky_ctf_packet *p = &packet->header;

	if (s->per_thread)
		take_owner(&s->header.owner, &piece->owner);
	*packet = (struct stream_packet){
		.header = s->header, .data = piece->data, .len = piece->len};
	p->position_begin = piece->pos;
	p->n_events = piece->n_events;
	p->timestamp_begin = begin_of(s, piece);
	p->timestamp_end = KY_MAX(piece->end_ts, p->timestamp_begin);
	tell_losses(s, p, count_discarded(s));
	p->seq_num = seq_num(s) + b->n;
	ky_ctf_packet_finish(p, piece->len);
	if (is_last_of_block(piece))
		ky_ctf_packet_pad(p, stream_file_padding(s->file.size + b->bytes, piece->len));
	if (!has_room(s, place, b->bytes, p->packet_bits / 8)) {
		b->file_full = true;
		return false;
	}
	note(s, p);
	ky_drain_take(&s->drain, piece);
	b->n++;
	b->bytes += p->packet_bits / 8;
	return true;
}

/* Adds up to n_max packets, but no more than is worth one write. */
static void fill_batch(
	struct batch *b, const struct stream_place *place, bool flush, unsigned int n_max)
{
	struct ky_drain_piece piece;

	while (b->n < n_max && b->bytes < BATCH_BYTES &&
		ky_drain_next(&b->after.drain, flush, &piece) && add_piece(b, place, &piece))
		;
}

/* Appends the packet without losses before the first piece, if there is one. */
static int append_first_base(struct stream *s, const struct stream_place *place, bool flush)
{
	struct ky_drain peek = s->drain;
	struct ky_drain_piece piece;

	if (seq_num(s) || !ky_drain_next(&peek, flush, &piece))
		return 0;
	return append_base(s, place, piece.begin_ts);
}

/* Appends an empty packet for losses that no packet reports yet. */
static int append_losses(struct stream *s, const struct stream_place *place)
{
	uint64_t ts = seq_num(s) ? s->ts : s->since;
	int ret;

	if (count_discarded(s) == s->n_discarded)
		return 0;
	ret = append_base(s, place, ts);
	return ret < 0 ? ret : append_empty(s, place, begin_of_empty(s, ts), count_discarded(s));
}

/* Returns the number of whole blocks that writers have left. */
static uint32_t n_ready(const struct stream *s)
{
	const struct ky_drain *d = &s->drain;

	return (uint32_t)(d->head / d->block_size - d->pos / d->block_size);
}

/*
 * Updates the pace: n_bytes were written since the last look. It falls at once, and rises slowly.
 */
static void measure_pace(struct stream *s, uint64_t n_bytes, uint64_t now_ns)
{
	uint64_t ring_size = (uint64_t)s->drain.n_blocks * s->drain.block_size;
	uint64_t passed = now_ns - s->looked_ns, sample;

	s->looked_ns = now_ns;
	s->fill_ns += passed / 8;
	if (n_bytes && !__builtin_mul_overflow(passed, ring_size / n_bytes, &sample))
		s->fill_ns = KY_MIN(s->fill_ns, sample);
}

/* Returns true if no writer waits for room, and the disk has time for a write. */
static bool is_calm(const struct stream *s)
{
	return s->fill_ns >= CALM_NS && n_ready(s) < s->drain.n_blocks - s->drain.n_blocks / 4;
}

static uint32_t n_wanted(const struct stream *s)
{
	uint64_t n = KY_MIN(s->drain.n_blocks / 2, BATCH_BYTES / s->drain.block_size);

	return is_calm(s) ? (uint32_t)KY_MAX(n, 1) : 1;
}

bool stream_is_drained(const struct stream *s)
{
	return s->drain.pos == s->drain.head && count_discarded(s) == s->n_discarded;
}

bool stream_look(struct stream *s, bool flush, uint64_t now_ns)
{
	uint64_t head = s->drain.head;

	if (ky_drain_look(&s->drain, flush || s->released) < 0) {
		s->due = true; /* what was looked at before */
		return false;
	}
	measure_pace(s, s->drain.head - head, now_ns);
	s->due = flush || s->fault.error || n_ready(s) >= n_wanted(s) ||
		 (s->released && !stream_is_drained(s));
	return true;
}

static bool worth_direct(
	const struct stream *s, const struct stream_place *place, const struct batch *b)
{
	return b->bytes >= DIRECT_BYTES && is_calm(s) && s->looked_ns >= *place->direct_from_ns &&
	       stream_file_may_be_direct(&s->file, b->packets, b->n);
}

/*
 * Writes the packets. If a write takes half of the time to spare, the next ones use the page cache,
 * so that no other stream waits.
 */
static int write_packets(struct stream *s, const struct stream_place *place, const struct batch *b)
{
	bool direct = worth_direct(s, place, b);
	uint64_t begin = ky_loop_now_ns(), end;
	int ret = stream_file_append(&s->file, place, b->packets, b->n, direct);

	end = ky_loop_now_ns();
	if (direct && end - begin > s->fill_ns / 4)
		*place->direct_from_ns = end + SLOW_DISK_REST * (end - begin);
	return ret;
}

/* Writes the next n_max packets or fewer. Returns how many, or -errno. */
static int write_batch(
	struct stream *s, const struct stream_place *place, bool flush, unsigned int n_max)
{
	struct batch b;
	int ret = 0;

	b.after = *s;
	b.n = 0;
	b.bytes = 0;
	b.file_full = false;
	fill_batch(&b, place, flush, n_max);
	if (b.file_full && !b.n) {
		ret = next_file(s, place);
		return ret < 0 ? ret : write_batch(s, place, flush, n_max);
	}
	if (b.n && place->dir >= 0)
		ret = write_packets(s, place, &b);
	if (ret < 0) /* a full disk may have room for the first */
		return b.n > 1 ? write_batch(s, place, flush, 1) : ret;
	b.after.file = s->file;
	*s = b.after;
	tell_writers(s);
	return (int)b.n;
}

static int write_all(struct stream *s, const struct stream_place *place, bool flush)
{
	int ret = append_first_base(s, place, flush);

	if (ret < 0)
		return ret;
	do
		ret = write_batch(s, place, flush, STREAM_FILE_BATCH);
	while (ret > 0);
	return !ret && flush ? append_losses(s, place) : ret;
}

int stream_write(struct stream *s, const struct stream_place *place, bool flush, uint64_t now_ns)
{
	if (!s->due)
		return 0;
	if (!fault_may_try(&s->fault, flush, now_ns))
		return s->fault.error;
	return fault_set(&s->fault, write_all(s, place, flush || s->released), now_ns);
}

uint64_t stream_size_after(const struct stream *s, uint64_t ts)
{
	struct ky_drain d = s->drain;
	struct ky_drain_piece piece;
	uint64_t size = 0, n;

	for (; ky_drain_next(&d, true, &piece); ky_drain_take(&d, &piece)) {
		n = sizeof(s->header) + piece.len;
		if (piece.end_ts > ts)
			size += is_last_of_block(&piece) ? ky_align_up(n, KY_CTF_PAGE) : n;
	}
	return size;
}

uint64_t stream_leave_out(struct stream *s, uint64_t ts)
{
	struct ky_drain_piece piece;
	uint64_t n = s->drain.count;

	while (ky_drain_next(&s->drain, true, &piece) && piece.end_ts <= ts)
		ky_drain_take(&s->drain, &piece);
	return s->drain.count - n;
}

/* Returns the number of records between our position and the head of the last look. */
static uint64_t n_left(const struct stream *s)
{
	const struct ky_drain *d = &s->drain;

	return d->head_count > d->count
		       ? KY_MIN(d->head_count - d->count, (d->head - d->pos) / KY_HEADER_COMPACT)
		       : 0;
}

/* Sets the chunk's files before the slot's apart, if the slot says so; again after a restart. */
static int set_files_apart(const struct stream *s, const struct stream_place *place)
{
	uint64_t end = KY_MAX(s->base.given_up, 1u) - 1, first = 0;
	int ret = 0, r;

	if (place->dir < 0)
		return 0;
	if (!place->max_size)
		end = KY_MIN(end, 1u); /* one file, without a number */
	else if (place->max_files)
		first = end - KY_MIN(end, place->max_files);
	for (; first < end; first++) {
		r = stream_file_set_apart(place, first);
		ret = ret ? ret : r;
	}
	return ret;
}

static void forget_losses(struct stream *s)
{
	memset(s->drain.lost, 0, sizeof(s->drain.lost));
	s->drain.n_abandoned = 0;
	s->n_unwritten = 0;
}

/* Stores the counts of an abandoned ring for the next consumer. */
static void note_abandoned(const struct stream *s)
{
	s->resume->abandoned_head = s->drain.abandoned_head;
	s->resume->n_abandoned = s->drain.n_abandoned;
	memcpy(s->resume->lost, s->drain.lost, sizeof(s->drain.lost));
	memcpy(s->resume->lost_seen, s->drain.lost_seen, sizeof(s->drain.lost_seen));
}

/*
 * Stores the slot first, which has the number of files to move: if the consumer dies before it has
 * moved them, its successor does.
 */
int stream_set_apart(
	struct stream *s, const struct stream_place *place, uint64_t clock_now, bool alone)
{
	struct ky_resume_slot next;

	s->drain.n_abandoned += n_left(s);
	ky_drain_abandon(&s->drain);
	if (alone)
		forget_losses(s);
	note_abandoned(s);
	next = here(s);
	next.file++;
	next.given_up = stream_has_packets(s) ? 1 + next.file : 1;
	if (place->dir >= 0) {
		next.damaged += stream_kept(s);
		next.kept_from = next.count;
	}
	/* The next file, which is not damaged, reports the losses of these files again. */
	next.chunk_packets = next.n_packets;
	next.discarded = next.chunk_discarded;
	next.ts = 0;
	s->since = clock_now;
	s->begin = 0;
	keep(s, &next);
	take_slot(s, !s->slot);
	return set_files_apart(s, place);
}

void stream_leave_apart(struct stream *s)
{
	ky_drain_abandon(&s->drain);
	s->drain.abandoned_head = s->resume->abandoned_head;
	s->drain.n_abandoned = s->resume->n_abandoned;
	memcpy(s->drain.lost, s->resume->lost, sizeof(s->drain.lost));
	memcpy(s->drain.lost_seen, s->resume->lost_seen, sizeof(s->drain.lost_seen));
}

void stream_look_apart(struct stream *s)
{
	ky_drain_look(&s->drain, false);
	note_abandoned(s);
}

void stream_give_up(struct stream *s, const struct stream_place *place)
{
	s->n_unwritten += n_left(s);
	s->drain.pos = s->drain.head;
	/* A full disk often has room for one packet: then the trace itself reports the losses. */
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

	last->position_end = ky_ctf_packet_end(p);
	note(last->s, p);
}

/*
 * Returns the position behind a last packet that ended at `end`: there or, if the dead consumer had
 * found no more records in that block and had reported that to the writers, at the next block.
 */
static uint64_t resume_position(const struct stream *s, uint64_t end)
{
	uint64_t consumed = __atomic_load_n(s->consumed, __ATOMIC_RELAXED);
	uint64_t next = (end / s->drain.block_size + 1) * s->drain.block_size;

	return consumed == next ? next : end;
}

/* Returns the slot of the newest file. Slots of later chunks were prepared and never used. */
static unsigned int newest_slot(const struct ky_resume_stream *r, uint64_t chunk)
{
	const struct ky_resume_slot *a = &r->slots[0], *b = &r->slots[1];

	if (a->chunk > chunk || b->chunk > chunk)
		return a->chunk > chunk;
	return a->chunk != b->chunk ? b->chunk > a->chunk : b->file > a->file;
}

static int resume_in_file(struct stream *s, const struct stream_place *place)
{
	struct last last = {.s = s, .position_end = s->base.pos};
	int ret = 0;

	if (place && s->base.given_up)
		ret = set_files_apart(s, place);
	if (!ret && place) {
		remove_oldest(s, place);
		ret = stream_file_resume(&s->file, place, &s->header, visit_packet, &last);
	}
	return ret < 0 ? ret
		       : ky_drain_resume(&s->drain, resume_position(s, last.position_end),
				 s->n_events, s->ts);
}

int stream_resume(struct stream *s, const struct stream_place *place, uint64_t chunk)
{
	int ret;

	take_slot(s, newest_slot(s->resume, chunk));
	if (!place || place->dir >= 0)
		return resume_in_file(s, place);
	ret = ky_drain_rejoin(&s->drain, __atomic_load_n(s->consumed, __ATOMIC_RELAXED));
	s->n_events = s->drain.count;
	return ret;
}

/* Begins a new chunk behind the records that were published before the last look. */
static void drop_published(const struct stream *s, struct ky_resume_slot *slot)
{
	struct ky_drain d = s->drain;
	struct ky_drain_piece piece;

	while (ky_drain_next(&d, true, &piece))
		ky_drain_take(&d, &piece);
	slot->pos = d.pos;
	slot->count = d.count;
	slot->ts = KY_MAX(d.ts, s->ts);
	slot->discarded = count_discarded(s);
	slot->cleared += slot->count - slot->kept_from;
}

void stream_prepare(struct stream *s, uint64_t chunk, bool drop)
{
	struct ky_resume_slot next = here(s);

	if (!s->drain.head && !count_discarded(s))
		return; /* never used */
	if (drop)
		drop_published(s, &next);
	next.chunk = chunk;
	next.file = 0;
	next.chunk_packets = next.n_packets;
	next.chunk_discarded = next.discarded;
	next.chunk_too_big = s->drain.lost[KY_LOST_TOO_BIG];
	next.kept_from = next.count;
	next.given_up = !!next.given_up;
	keep(s, &next);
}

void stream_enter(struct stream *s, uint64_t chunk)
{
	if (s->resume->slots[!s->slot].chunk != chunk)
		return;
	take_slot(s, !s->slot);
	ky_drain_resume(&s->drain, s->base.pos, s->base.count, s->base.ts);
	tell_writers(s);
}

uint64_t stream_kept(const struct stream *s)
{
	return s->n_events - KY_MIN(s->base.kept_from, s->n_events);
}

/* Adds n, up to the maximum: a program that overwrites its counts cannot reduce others' sums. */
static void add_lost(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

void stream_add_stats(const struct stream *s, struct ky_cons_stats *stats)
{
	stats->recorded += s->n_events;
	add_lost(&stats->discarded, ky_drain_lost(&s->drain));
	add_lost(&stats->discarded_too_big, s->drain.lost[KY_LOST_TOO_BIG]);
	add_lost(&stats->discarded_refused, s->drain.lost[KY_LOST_REFUSED]);
	add_lost(&stats->discarded_no_slot, s->drain.lost[KY_LOST_NO_SLOT]);
	stats->unwritten += s->n_unwritten;
	stats->bytes += s->base.n_bytes + s->file.size;
	stats->packets += s->base.n_packets + s->file.n_packets;
	stats->removed += s->base.removed;
	stats->cleared += s->base.cleared;
	stats->damaged += s->base.damaged;
}
