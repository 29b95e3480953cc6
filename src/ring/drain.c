/* SPDX-License-Identifier: MIT */
#include "ring/drain.h"

#include "base/clock.h"

/*
 * Units by which the clocks of two processors may differ, and by which the processor may read its
 * clock before it reads a word: a millisecond or more.
 */
#define CLOCK_MARGIN ((uint64_t)1 << 24)

/*
 * A writer publishes at most every 10 ns, and reading three words takes about as long: enough
 * tries.
 */
#define SETTLE_TRIES 1000

static uint64_t fetch_head(const struct ky_drain *d)
{
	/*
	 * Acquire: pairs with the writers' publishing store. All that the head covers is visible
	 * after it.
	 */
	return __atomic_load_n(&d->ctl->head, __ATOMIC_ACQUIRE);
}

static uint64_t block_start(const struct ky_drain *d, uint64_t pos)
{
	return pos & ~(uint64_t)(d->block_size - 1);
}

static const struct ky_block_entry *block_entry(const struct ky_drain *d, uint64_t pos)
{
	return &d->blocks[(pos / d->block_size) & (d->n_blocks - 1)];
}

/*
 * Returns true if a position lies within record space, which excludes the last KY_BLOCK_ROOM +
 * KY_BLOCK_SLACK bytes of each block.
 */
static bool pos_valid(const struct ky_drain *d, uint64_t pos)
{
	return pos - block_start(d, pos) <= KY_BLOCK_LIMIT(d->block_size);
}

/*
 * Writers enter a block only after its previous contents were consumed. So the head is less than
 * the ring ahead of our block, or some rings in a spreading ring. It never decreases.
 */
static bool head_valid(const struct ky_drain *d, uint64_t head)
{
	return head >= d->head && pos_valid(d, head) && head - block_start(d, d->pos) < d->reach;
}

/* Returns true if n bytes can be those of `count` records. */
static bool holds(uint64_t n_bytes, uint64_t count)
{
	return count <= n_bytes / KY_HEADER_COMPACT && !count == !n_bytes;
}

static bool spreads(const struct ky_drain *d)
{
	return d->reach > (uint64_t)d->n_blocks * d->block_size;
}

/*
 * Returns the start of the block that follows the one at `start`, which writers have left. 0: the
 * entry makes no sense. A writer that does not know of spreading stores no position.
 */
static uint64_t block_after(const struct ky_drain *d, uint64_t start)
{
	uint64_t next = spreads(d) ? ky_ring_load(&block_entry(d, start)->next) : 0;

	if (!next)
		next = start + d->block_size;
	return next > start && next <= d->head && block_start(d, next) == next ? next : 0;
}

void ky_drain_init(struct ky_drain *d, const struct ky_geometry *g, void *base, uint32_t i)
{
	*d = (struct ky_drain){
		.ctl = ky_geometry_ctl(g, base, i),
		.blocks = ky_geometry_entry(g, base, i, 0),
		.data = ky_geometry_data(g, base, i),
		.block_size = g->block_size,
		.n_blocks = g->n_blocks,
		.reach = ky_geometry_reach(g),
		.clock = g->clock,
		.is_thread = g->mode == KY_SET_PER_THREAD,
	};
}

int ky_drain_resume(struct ky_drain *d, uint64_t pos, uint64_t count, uint64_t ts)
{
	if (pos > UINT64_MAX / 2 || !pos_valid(d, pos))
		return -EBADMSG;
	d->pos = d->head = pos;
	d->count = count;
	d->ts = ts;
	d->resumed = true;
	return 0;
}

int ky_drain_rejoin(struct ky_drain *d, uint64_t consumed)
{
	uint64_t pos = block_start(d, consumed);
	const struct ky_block_entry *entry = block_entry(d, pos);
	uint64_t count = pos ? ky_ring_load(&entry->begin_count) : 0;

	if (count > pos / KY_HEADER_COMPACT)
		return -EBADMSG;
	return ky_drain_resume(d, pos, count, pos ? ky_ring_load(&entry->begin_ts) : 0);
}

/* More events than a ring can lose between two looks that are hours apart, at 5 ns each. */
#define LOST_MAX ((uint64_t)1 << 40)
/* The first look after a restart finds all that the ring lost: in two months, at 5 ns each. */
#define LOST_RESUMED_MAX ((uint64_t)1 << 50)
#define LOST_SUM_MAX	 ((uint64_t)1 << 60)

/*
 * Adds up the lost counters. A counter that decreased, or grew by more than is possible, was
 * overwritten by an application: only what is added to it afterwards counts.
 */
static void look_at_lost(struct ky_drain *d)
{
	uint64_t max = d->resumed ? LOST_RESUMED_MAX : LOST_MAX;

	d->resumed = false;
	for (unsigned int i = 0; i < KY_LOST_REASONS; i++) {
		uint64_t seen = ky_ring_load(&d->ctl->lost[i]), more = seen - d->lost_seen[i];

		d->lost_seen[i] = seen;
		if (more <= max)
			d->lost[i] = KY_MIN(d->lost[i] + more, LOST_SUM_MAX);
	}
}

/*
 * Reads the clock that belongs to the head. While a head stands, writers store no clock that is
 * less than those before it, nor, unless they say that it moves, one that is greater than those
 * after it. So if the head is the same before and after the clock is read, the clock is the end of
 * that head. A clock that moves for two looks is that of a thread that was killed or stopped.
 */
static uint64_t settle_head(struct ky_drain *d, uint64_t word)
{
	uint64_t again, moving_head = d->moving_head;

	d->moving_head = 0;
	for (unsigned int i = 0; i < SETTLE_TRIES && !d->settled; i++) {
		bool moves;

		d->head_ts = ky_ring_load(&d->ctl->last_ts);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		moves = d->is_thread && ky_ring_load(&d->ctl->moving);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		again = fetch_head(d);
		d->settled = again == word && (!moves || word == moving_head);
		d->moving_head = moves ? again : 0;
		word = again;
	}
	return word;
}

/*
 * Counts what applications still record into a quarantined ring: it is lost, and the head counts
 * it. A head that moved farther than writers can, or by fewer bytes than that many records take,
 * was overwritten again.
 */
static void look_at_abandoned(struct ky_drain *d)
{
	uint64_t word = fetch_head(d);
	uint64_t bytes = ky_head_pos(word, (uint32_t)d->abandoned_head) -
			 (uint32_t)d->abandoned_head;
	uint64_t n = (uint32_t)((word >> 32) - (d->abandoned_head >> 32));

	d->abandoned_head = word;
	if (bytes <= d->reach && n <= bytes / KY_HEADER_COMPACT)
		d->n_abandoned += n;
	look_at_lost(d);
}

int ky_drain_look(struct ky_drain *d, bool settle)
{
	uint64_t word, head;

	if (d->quarantined) {
		look_at_abandoned(d);
		return -EBADMSG;
	}
	word = fetch_head(d);
	d->settled = false;
	if (settle)
		word = settle_head(d, word);
	head = ky_head_pos(word, d->pos);
	/* After the words of the head, and after all entries that it covers were stored. */
	d->max_ts = d->latest ? d->latest : ky_clock_read(d->clock) + CLOCK_MARGIN;
	if (!head_valid(d, head) || (d->resumed && d->ts > d->max_ts)) {
		d->quarantined = true;
		d->abandoned_head = word;
		return -EBADMSG;
	}
	d->head = head;
	d->head_count = ky_head_count(word, d->count);
	look_at_lost(d);
	return 0;
}

/*
 * Returns the clock of a ring's first record. Its header is long (u8 31, u32 id, u64 clock). It is
 * short if all of the clock fits it, which is so soon after the machine's start.
 */
static uint64_t first_record_ts(const struct ky_drain_piece *p)
{
	uint64_t ts = 0;
	uint32_t compact;

	if (p->len < KY_HEADER_COMPACT)
		return p->end_ts;
	memcpy(&compact, p->data, sizeof(compact));
	if ((compact & KY_ID_EXTENDED) != KY_ID_EXTENDED)
		ts = compact >> KY_ID_BITS;
	else if (p->len >= KY_HEADER_EXTENDED)
		memcpy(&ts, p->data + 5, sizeof(ts));
	return KY_MIN(ts, p->end_ts);
}

static void fetch_owner(struct ky_owner *to, const struct ky_owner *from)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(to->words); i++)
		to->words[i] = ky_ring_load(&from->words[i]);
}

/*
 * Describes the piece from our position to `end`. Its last record has clock ts and number `count`.
 */
static void describe_piece(const struct ky_drain *d, struct ky_drain_piece *p, uint64_t end,
	uint64_t ts, uint64_t count)
{
	uint64_t ring_mask = (uint64_t)d->n_blocks * d->block_size - 1;

	p->pos = d->pos;
	p->len = (uint32_t)(end - d->pos);
	p->data = d->data + (d->pos & ring_mask);
	p->end_ts = KY_MAX(ts, d->ts);
	p->begin_ts = d->pos ? d->ts : KY_MAX(d->ts, first_record_ts(p));
	p->n_events = count - d->count;
	fetch_owner(&p->owner, &block_entry(d, d->pos)->owner);
}

/* Gives the ring up at the next look: it claims what is impossible. */
static bool refuse(struct ky_drain *d)
{
	d->quarantined = true;
	d->abandoned_head = ky_head(d->head, d->head_count);
	return false;
}

/*
 * Describes the rest of the block at our position, which writers have left. Returns false if
 * nothing is left in it.
 */
static bool next_full(struct ky_drain *d, struct ky_drain_piece *p)
{
	uint64_t start = block_start(d, d->pos), after = block_after(d, start);
	const struct ky_block_entry *entry = block_entry(d, after);
	uint64_t used = ky_ring_load(&block_entry(d, start)->used), end = start + used;
	uint64_t ts = ky_ring_load(&entry->begin_ts), count = ky_ring_load(&entry->begin_count);

	if (!after || used > KY_BLOCK_LIMIT(d->block_size) || end < d->pos || ts > d->max_ts ||
		!holds(end - d->pos, count - d->count))
		return refuse(d);
	if (end == d->pos) {
		d->pos = after;
		return false;
	}
	describe_piece(d, p, end, ts, count);
	p->next = after;
	return true;
}

bool ky_drain_next(struct ky_drain *d, bool partial, struct ky_drain_piece *ret_piece)
{
	while (!d->quarantined && block_start(d, d->pos) < block_start(d, d->head)) {
		if (next_full(d, ret_piece))
			return true;
	}
	if (d->quarantined || !partial || !d->settled || d->pos >= d->head)
		return false;
	if (d->head_ts > d->max_ts || !holds(d->head - d->pos, d->head_count - d->count))
		return refuse(d);
	describe_piece(d, ret_piece, d->head, d->head_ts, d->head_count);
	ret_piece->next = d->head;
	return true;
}

/* Returns the number of blocks that writers have entered before the one at pos. */
static uint64_t block_number(const struct ky_drain *d, uint64_t pos)
{
	return spreads(d) ? ky_ring_load(&block_entry(d, pos)->number) : pos / d->block_size;
}

uint32_t ky_drain_ready(const struct ky_drain *d)
{
	return (uint32_t)KY_MIN(
		block_number(d, d->head) - block_number(d, d->pos), (uint64_t)d->n_blocks);
}

uint64_t ky_drain_volume(const struct ky_drain *d)
{
	return block_number(d, d->head) * d->block_size + d->head % d->block_size;
}

void ky_drain_take(struct ky_drain *d, const struct ky_drain_piece *piece)
{
	d->pos = piece->next;
	d->count += piece->n_events;
	d->ts = piece->end_ts;
}

void ky_drain_abandon(struct ky_drain *d)
{
	if (!d->quarantined)
		d->abandoned_head = fetch_head(d);
	d->quarantined = true;
	d->settled = false;
	d->pos = d->head;
	look_at_lost(d);
}

uint64_t ky_drain_lost(const struct ky_drain *d)
{
	uint64_t sum = d->n_abandoned;

	for (unsigned int i = 0; i < KY_LOST_REASONS; i++)
		sum += d->lost[i];
	return sum;
}
