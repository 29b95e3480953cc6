/* SPDX-License-Identifier: MIT */
/*
 * Tests the reader's side against a plain single-threaded writer that follows docs/shm-abi.md, and
 * against memory that was overwritten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "ring/snapshot.h"

#define BLOCK  4096u
#define BLOCKS 4u
#define LIMIT  KY_BLOCK_LIMIT(BLOCK)

struct ring {
	struct ky_geometry g;
	void *base;
	struct ky_ring_ctl *ctl;
	struct ky_drain drain;
	uint64_t consumed; /* position up to which the writer may overwrite */
	uint64_t clock, n_written;
};

static struct ring *ring_new(void)
{
	struct ring *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->g = (struct ky_geometry){.n_rings = 2, .n_blocks = BLOCKS, .block_size = BLOCK};
	assert_int_equal(ky_geometry_init(&r->g), 0);
	r->base = calloc(1, r->g.total_size);
	assert_non_null(r->base);
	r->ctl = ky_geometry_ctl(&r->g, r->base, 1);
	r->clock = 1000000;
	ky_drain_init(&r->drain, &r->g, r->base, 1);
	return r;
}

static void ring_free(struct ring *r)
{
	free(r->base);
	free(r);
}

static struct ky_block_entry *entry_at(struct ring *r, uint64_t pos)
{
	return ky_geometry_entry(&r->g, r->base, 1, pos);
}

/* Returns the position of the head. The rings here are written up to 4 GiB at most. */
static uint64_t head_position(const struct ring *r)
{
	return (uint32_t)r->ctl->head;
}

static bool change_block(struct ring *r, uint64_t pos)
{
	uint64_t next = (pos / BLOCK + 1) * BLOCK;

	if (next + BLOCK - BLOCKS * BLOCK > r->consumed && next + BLOCK > BLOCKS * BLOCK)
		return false;
	entry_at(r, pos)->used = pos % BLOCK;
	entry_at(r, next)->begin_ts = r->ctl->last_ts;
	entry_at(r, next)->begin_count = r->n_written;
	r->ctl->head = ky_head(next, r->n_written);
	return true;
}

/* Writes a record of a header, its own number as u64, and `extra` bytes. */
static bool ring_write(struct ring *r, uint32_t extra)
{
	uint64_t pos = head_position(r);
	bool first = pos == 0;
	uint32_t size = (first ? KY_HEADER_EXTENDED : KY_HEADER_COMPACT) + 8 + extra;
	uint8_t *to;

	if (size > LIMIT) {
		r->ctl->lost[KY_LOST_TOO_BIG]++;
		return false;
	}
	if (pos % BLOCK + size > LIMIT) {
		if (!change_block(r, pos)) {
			r->ctl->lost[KY_LOST_FULL]++;
			return false;
		}
		pos = head_position(r);
	}
	r->clock += 10;
	to = ky_geometry_data(&r->g, r->base, 1) + (pos & ky_geometry_ring_mask(&r->g));
	memset(to, 0xee, size);
	if (first) {
		to[0] = KY_ID_EXTENDED;
		memcpy(to + 5, &r->clock, 8);
	}
	memcpy(to + size - extra - 8, &r->n_written, 8);
	r->ctl->last_ts = r->clock;
	r->ctl->head = ky_head(pos + size, ++r->n_written);
	return true;
}

static void take_piece(struct ring *r, const struct ky_drain_piece *p)
{
	ky_drain_take(&r->drain, p);
	r->consumed = r->drain.pos;
}

static void test_empty(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_false(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(ky_drain_lost(&r->drain), 0);
	ring_free(r);
}

static void test_partial(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	for (int i = 0; i < 3; i++)
		assert_true(ring_write(r, 0));
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_false(ky_drain_next(&r->drain, false, &p));
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.pos, 0);
	assert_int_equal(p.len, 21 + 12 + 12);
	assert_int_equal(p.next, p.len);
	assert_int_equal(p.n_events, 3);
	assert_int_equal(p.begin_ts, 1000010);
	assert_int_equal(p.end_ts, 1000030);
	assert_ptr_equal(p.data, ky_geometry_data(&r->g, r->base, 1));
	take_piece(r, &p);
	assert_false(ky_drain_next(&r->drain, true, &p));

	/* continues in the middle of the block */
	assert_true(ring_write(r, 5));
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.pos, 45);
	assert_int_equal(p.len, 17);
	assert_int_equal(p.begin_ts, 1000030);
	assert_int_equal(p.end_ts, 1000040);
	assert_int_equal(p.n_events, 1);
	ring_free(r);
}

/* Soon after the machine's start, a ring begins with a short header that holds the whole clock. */
static void test_early_clock(void **state)
{
	struct ring *r = ring_new();
	uint32_t header = 1234u << KY_ID_BITS | 5;
	struct ky_drain_piece p;

	memcpy(ky_geometry_data(&r->g, r->base, 1), &header, sizeof(header));
	r->ctl->last_ts = 5678;
	r->ctl->head = ky_head(24, 2);
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.begin_ts, 1234);
	assert_int_equal(p.end_ts, 5678);
	ring_free(r);
}

/* Without settling the head, only finished blocks are given. */
static void test_unsettled(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	assert_true(ring_write(r, 0));
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	assert_false(ky_drain_next(&r->drain, true, &p));
	ring_free(r);
}

/*
 * The clock of a thread's head that is being changed may be that of a later head. One that is still
 * being changed at the next look belongs to a thread that is stopped or was killed.
 */
static void test_moving_clock(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	r->drain.is_thread = true;
	assert_true(ring_write(r, 0));
	for (int i = 0; i < 2; i++) {
		r->ctl->moving = 1;
		assert_int_equal(ky_drain_look(&r->drain, true), 0);
		assert_false(ky_drain_next(&r->drain, true, &p));
		r->ctl->moving = 0;
		assert_int_equal(ky_drain_look(&r->drain, true), 0);
		assert_true(ky_drain_next(&r->drain, true, &p));
	}
	r->ctl->moving = 1;
	for (int i = 0; i < 2; i++) {
		assert_true(ring_write(r, 0));
		assert_int_equal(ky_drain_look(&r->drain, true), 0);
		assert_false(ky_drain_next(&r->drain, true, &p));
	}
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.n_events, 3);
	ring_free(r);
}

static void test_full_blocks(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;
	uint64_t events = 0, ts = 0;

	while (ring_write(r, 100))
		;
	assert_int_equal(r->ctl->lost[KY_LOST_FULL], 1);
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	assert_int_equal(ky_drain_lost(&r->drain), 1);
	for (unsigned int b = 0; b < BLOCKS - 1; b++) {
		assert_true(ky_drain_next(&r->drain, false, &p));
		assert_int_equal(p.pos, b * BLOCK);
		assert_int_equal(p.next, (b + 1) * BLOCK);
		assert_true(p.len <= LIMIT && p.len > LIMIT - 112);
		assert_true(p.begin_ts >= ts && p.end_ts > p.begin_ts);
		ts = p.end_ts;
		events += p.n_events;
		take_piece(r, &p);
	}
	assert_false(ky_drain_next(&r->drain, false, &p));
	/* the last block is full as well, but nobody has left it */
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(events + p.n_events, r->n_written);
	assert_int_equal(p.end_ts, r->clock);
	ring_free(r);
}

/* A block that was taken partly and then left without another record gives no piece. */
static void test_left_after_partial(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	assert_true(ring_write(r, 0));
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	take_piece(r, &p);
	assert_true(ring_write(r, LIMIT - 12));
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.pos, BLOCK);
	assert_int_equal(p.len, LIMIT);
	assert_int_equal(p.n_events, 1);
	ring_free(r);
}

/*
 * Many rounds of random sizes and takes: every record is found once, in order, however it is
 * drained.
 */
static void test_wrap_exact(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;
	uint64_t lost = 0, events = 0, seen = 0, ts = 0;
	const uint32_t extra = 37; /* constant, so that records can be found */

	srand(1);
	for (int round = 0; round < 3000; round++) {
		for (int n = rand() % 120; n; n--)
			lost += !ring_write(r, extra);
		bool partial = rand() % 3 == 0;

		assert_int_equal(ky_drain_look(&r->drain, partial), 0);
		for (int n = rand() % 5; n && ky_drain_next(&r->drain, partial, &p); n--) {
			uint32_t at = p.pos ? 4 : 13;
			uint64_t number;

			assert_true(p.begin_ts >= ts && p.end_ts >= p.begin_ts);
			ts = p.end_ts;
			for (uint64_t i = 0; i < p.n_events; i++, at += 4 + 8 + extra) {
				memcpy(&number, p.data + at, 8);
				assert_int_equal(number, seen++);
			}
			assert_int_equal(at, p.len + 4);
			events += p.n_events;
			take_piece(r, &p);
		}
	}
	assert_true(r->drain.pos > 10 * BLOCKS * BLOCK);
	assert_true(lost > 0);
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	while (ky_drain_next(&r->drain, true, &p)) {
		events += p.n_events;
		take_piece(r, &p);
	}
	assert_int_equal(events, r->n_written);
	assert_int_equal(ky_drain_lost(&r->drain), lost);
	ring_free(r);
}

static void expect_quarantine(uint64_t head)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	r->ctl->head = head;
	assert_int_equal(ky_drain_look(&r->drain, true), -EBADMSG);
	assert_false(ky_drain_next(&r->drain, true, &p));
	r->ctl->head = 0; /* the head decreases */
	assert_int_equal(ky_drain_look(&r->drain, true), -EBADMSG);
	ring_free(r);
}

static void test_hostile_heads(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	expect_quarantine(BLOCKS * BLOCK);     /* a whole ring ahead */
	expect_quarantine(BLOCKS * BLOCK + 1); /* more */
	expect_quarantine(LIMIT + 1);	       /* beyond record space */
	expect_quarantine(BLOCK - 1);
	expect_quarantine(INT64_MAX);
	/* back, but not before what was taken */
	assert_true(ring_write(r, 0) && ring_write(r, 0));
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	r->ctl->head -= 1;
	assert_int_equal(ky_drain_look(&r->drain, true), -EBADMSG);
	assert_true(r->drain.quarantined);
	assert_false(ky_drain_next(&r->drain, false, &p));
	ring_free(r);
}

static void test_hostile_lost(void **state)
{
	struct ring *r = ring_new();

	r->ctl->lost[0] = 5;
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	r->ctl->lost[0] = 3;
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	assert_int_equal(ky_drain_lost(&r->drain), 5);
	r->ctl->lost[0] = UINT64_MAX - 1000;
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	assert_int_equal(ky_drain_lost(&r->drain), 5);
	r->ctl->lost[0] += 7; /* lost by others, after the count was overwritten */
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	assert_int_equal(ky_drain_lost(&r->drain), 12);
	for (unsigned int i = 0; i < 1u << 21; i++) {
		r->ctl->lost[i % KY_LOST_REASONS] += (uint64_t)1 << 40;
		assert_int_equal(ky_drain_look(&r->drain, false), 0);
	}
	assert_in_range(ky_drain_lost(&r->drain), (uint64_t)1 << 60, (uint64_t)1 << 63);
	ring_free(r);
}

enum word { USED, BEGIN_TS, BEGIN_COUNT };

/*
 * Fills a ring, and takes `taken` bytes of its first block. Overwrites a word that says what the
 * block holds, and expects that the reader gives the ring up.
 */
static void expect_refusal(uint64_t taken, enum word word, uint64_t value)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	while (ring_write(r, 0))
		;
	if (taken)
		assert_int_equal(ky_drain_resume(&r->drain, taken, (taken - 9) / 12, 1000000), 0);
	assert_int_equal(ky_drain_look(&r->drain, false), 0);
	if (word == USED)
		entry_at(r, 0)->used = value;
	else
		(&entry_at(r, BLOCK)->begin_ts)[word == BEGIN_COUNT] = value;
	assert_false(ky_drain_next(&r->drain, true, &p));
	assert_true(r->drain.quarantined);
	assert_int_equal(ky_drain_look(&r->drain, true), -EBADMSG);
	assert_false(ky_drain_next(&r->drain, true, &p));
	ring_free(r);
}

static void test_hostile_table(void **state)
{
	expect_refusal(0, USED, UINT64_MAX);
	expect_refusal(0, USED, LIMIT + 1);
	expect_refusal(0, USED, 0);   /* but there are records */
	expect_refusal(0, USED, 64);  /* too few bytes for them */
	expect_refusal(33, USED, 32); /* less than was taken */
	expect_refusal(33, USED, 33);
	expect_refusal(0, BEGIN_TS, UINT64_MAX);
	expect_refusal(0, BEGIN_TS, ky_clock_ns(CLOCK_MONOTONIC) + 1000000000);
	expect_refusal(0, BEGIN_COUNT, UINT64_MAX);
	expect_refusal(0, BEGIN_COUNT, 0);
	expect_refusal(0, BEGIN_COUNT, LIMIT / KY_HEADER_COMPACT + 1);
	expect_refusal(33, BEGIN_COUNT, 1); /* fewer than were taken */
}

/*
 * Overwrites the clock of a record's head, or the number of records, and expects that the reader
 * gives the ring up.
 */
static void expect_refused_end(uint64_t last_ts, uint64_t count)
{
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	assert_true(ring_write(r, 0));
	r->ctl->last_ts = last_ts;
	r->ctl->head = ky_head(head_position(r), count);
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_false(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(ky_drain_look(&r->drain, true), -EBADMSG);
	ring_free(r);
}

static void test_hostile_end(void **state)
{
	expect_refused_end(UINT64_MAX, 1);
	expect_refused_end(ky_clock_ns(CLOCK_MONOTONIC) + 1000000000, 1);
	expect_refused_end(1000000, 0);
	expect_refused_end(1000000, 21 / KY_HEADER_COMPACT + 1);
}

/* A clock is possible until now, or, if another boot has recorded it, until its limit. */
static void test_latest_clock(void **state)
{
	const uint64_t now = ky_clock_ns(CLOCK_MONOTONIC);
	struct ring *r = ring_new();
	struct ky_drain_piece p;

	assert_true(ring_write(r, 0));
	r->ctl->last_ts = now;
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.end_ts, now);
	r->drain.latest = r->ctl->last_ts = 2 * now;
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.end_ts, 2 * now);
	r->ctl->last_ts++;
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_false(ky_drain_next(&r->drain, true, &p));
	ring_free(r);
}

/* Random words everywhere: pieces stay inside the data; clocks and positions never decrease. */
static void test_scribble(void **state)
{
	struct ring *r = ring_new();
	const uint8_t *data = ky_geometry_data(&r->g, r->base, 1) - KY_BLOCK_ROOM;
	struct ky_drain_piece p;
	unsigned int n_pieces = 0, n_quarantined = 0;

	srand(2);
	for (int round = 0; round < 20000; round++) {
		uint64_t pos = r->drain.pos, ts = r->drain.ts;

		for (unsigned int i = 0; i < sizeof(*r->ctl) / 4; i++)
			((uint32_t *)r->ctl)[i] = (uint32_t)rand() >> (rand() % 31);
		for (unsigned int i = 0; i < BLOCKS * sizeof(struct ky_block_entry) / 4; i++)
			((uint32_t *)entry_at(r, 0))[i] = (uint32_t)rand() >> (rand() % 31);
		/* mostly a possible head, and often possible entries */
		if (rand() % 100) {
			uint64_t n = (uint64_t)(rand() % (BLOCKS * BLOCK));

			r->ctl->head = ky_head(pos + n, r->drain.count + n / 100);
		}
		for (uint64_t b = 0; b < BLOCKS && rand() % 4; b++) {
			entry_at(r, pos + b * BLOCK)->used = LIMIT - (uint64_t)(rand() % 9);
			entry_at(r, pos + b * BLOCK)->begin_count = r->drain.count +
								    b * (uint64_t)(rand() % 500);
		}
		if (ky_drain_look(&r->drain, true) < 0) {
			ky_drain_init(&r->drain, &r->g, r->base, 1);
			n_quarantined++;
			continue;
		}
		while (ky_drain_next(&r->drain, true, &p)) {
			assert_true(p.data >= data && p.len > 0);
			assert_true(p.data + p.len <= data + r->g.data_stride);
			assert_true(p.pos >= pos && p.next >= p.pos + p.len);
			assert_true(p.begin_ts >= ts && p.end_ts >= p.begin_ts);
			assert_true(p.n_events && p.n_events <= p.len / 4);
			assert_true(p.end_ts <= ky_clock_ns(CLOCK_MONOTONIC) + 1000000000);
			ky_drain_take(&r->drain, &p);
			pos = r->drain.pos;
			ts = r->drain.ts;
			n_pieces++;
		}
	}
	assert_true(n_pieces > 1000 && n_quarantined > 1000);
	ring_free(r);
}

static void test_resume(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain d;
	struct ky_drain_piece p;

	for (int i = 0; i < 5; i++)
		assert_true(ring_write(r, 0));
	ky_drain_init(&d, &r->g, r->base, 1);
	assert_int_equal(ky_drain_resume(&d, LIMIT + 1, 0, 0), -EBADMSG);
	assert_int_equal(ky_drain_resume(&d, UINT64_MAX, 0, 0), -EBADMSG);
	assert_int_equal(ky_drain_resume(&d, 21 + 12, 2, 1000020), 0);
	assert_int_equal(ky_drain_look(&d, true), 0);
	assert_true(ky_drain_next(&d, true, &p));
	assert_int_equal(p.n_events, 3);
	assert_int_equal(p.begin_ts, 1000020);
	/* beyond what was ever published */
	assert_int_equal(ky_drain_resume(&d, 2 * BLOCK, 0, 0), 0);
	assert_int_equal(ky_drain_look(&d, true), -EBADMSG);
	ring_free(r);
}

static void test_rejoin(void **state)
{
	struct ring *r = ring_new();
	struct ky_drain d;
	struct ky_drain_piece p;
	uint64_t before;

	while (ring_write(r, 0))
		;
	before = entry_at(r, 2 * BLOCK)->begin_count;
	ky_drain_init(&d, &r->g, r->base, 1);
	assert_int_equal(ky_drain_rejoin(&d, 2 * BLOCK + 500), 0);
	assert_int_equal(d.count, before);
	assert_int_equal(ky_drain_look(&d, true), 0);
	assert_true(ky_drain_next(&d, true, &p));
	assert_int_equal(p.pos, 2 * BLOCK);
	assert_int_equal(p.begin_ts, entry_at(r, 2 * BLOCK)->begin_ts);
	assert_int_equal(p.n_events, entry_at(r, 3 * BLOCK)->begin_count - before);
	entry_at(r, 2 * BLOCK)->begin_count = 2 * BLOCK / KY_HEADER_COMPACT + 1;
	assert_int_equal(ky_drain_rejoin(&d, 2 * BLOCK), -EBADMSG);
	entry_at(r, 2 * BLOCK)->begin_count = before;
	entry_at(r, 2 * BLOCK)->begin_ts = UINT64_MAX;
	assert_int_equal(ky_drain_rejoin(&d, 2 * BLOCK), 0);
	assert_int_equal(ky_drain_look(&d, false), -EBADMSG);
	ring_free(r);
}

static void test_geometry_of_peer(void **state)
{
	struct ky_geometry copy, g = {
					 .mode = KY_SET_PER_THREAD,
					 .clock = KY_CLOCK_TSC,
					 .n_rings = 3,
					 .n_blocks = 8,
					 .block_size = 4096,
				 };

	assert_int_equal(ky_geometry_init(&g), 0);
	memset(&copy, 0xff, sizeof(copy));
	KY_GEOMETRY_COPY(&copy, &g);
	assert_int_equal(ky_geometry_take(&copy), 0);
	assert_int_equal(copy.n_home, 8);
	assert_memory_equal(&copy, &g, offsetof(struct ky_geometry, block_size));
	assert_memory_equal(&copy.slot_offset, &g.slot_offset,
		sizeof(g) - offsetof(struct ky_geometry, slot_offset));
	copy.total_size += 8;
	assert_int_equal(ky_geometry_take(&copy), -EBADMSG);
	g.n_blocks = g.n_home = KY_RING_MAX_BLOCKS;
	g.block_size = KY_RING_MAX / KY_RING_MAX_BLOCKS;
	assert_int_equal(ky_geometry_init(&g), 0);
	g.block_size *= 2;
	assert_int_equal(ky_geometry_init(&g), -EINVAL);
}

/* Only CPUs' rings can spread, over at least two blocks, and within 32 bits. */
static void test_geometry_that_spreads(void **state)
{
	const struct ky_geometry right = {
		.n_rings = 3, .n_blocks = 64, .n_home = 7, .block_size = 65536};
	struct ky_geometry g = right;

	assert_int_equal(ky_geometry_init(&g), 0);
	assert_true(ky_geometry_spreads(&g));
	assert_int_equal(ky_geometry_home_size(&g), 7 * 65536);
	assert_int_equal(ky_geometry_reach(&g), KY_RING_LAPS * 64 * 65536);
#define REFUSED(member, value)                                                                     \
	do {                                                                                       \
		g = right;                                                                         \
		g.member = value;                                                                  \
		assert_int_equal(ky_geometry_init(&g), -EINVAL);                                   \
	} while (0)
	REFUSED(n_home, 65);
	REFUSED(n_home, 1);
	REFUSED(mode, KY_SET_PER_THREAD);
	REFUSED(block_size, KY_RING_SPREAD_MAX / 64 * 2);
	g = right;
	g.block_size = KY_RING_SPREAD_MAX / 64;
	assert_int_equal(ky_geometry_init(&g), 0);
}

static void check_layout(const struct ky_geometry *g)
{
	uint64_t n = g->n_rings, slots = g->mode == KY_SET_PER_THREAD ? n * sizeof(uint64_t) : 0;

	assert_true(g->slot_offset >= KY_SET_SLOTS + sizeof(struct ky_set_slots));
	assert_true(g->slot_offset + slots <= g->ctl_offset);
	assert_true(g->ctl_offset + n * sizeof(struct ky_ring_ctl) <= g->table_offset);
	assert_true(g->n_blocks * sizeof(struct ky_block_entry) <= g->table_stride);
	assert_true(g->table_offset + n * g->table_stride <= g->data_offset);
	assert_true((uint64_t)g->n_blocks * g->block_size <= g->data_stride);
	assert_int_equal(g->data_offset + n * g->data_stride, g->oldest_offset);
	assert_true(g->oldest_offset + n * sizeof(uint64_t) <= g->total_size);
}

/*
 * As many CPUs as the largest machines have, and as many rings as a set can have: no rings overlap.
 */
static void test_many_rings(void **state)
{
	static const uint32_t numbers[] = {1, 1024, 32768, 65536};
	struct ky_geometry g = {.n_blocks = 8, .block_size = 256 << 10};

	for (size_t i = 0; i < KY_ARRAY_SIZE(numbers); i++) {
		g.n_rings = numbers[i];
		for (g.mode = KY_SET_PER_CPU; g.mode <= KY_SET_PER_THREAD; g.mode++) {
			assert_int_equal(ky_geometry_init(&g), 0);
			check_layout(&g);
			/* the cost of a ring besides its data, and some pages */
			assert_true(g.data_offset <= g.n_rings * UINT64_C(648) + 3 * 4096);
		}
	}
	g.mode = KY_SET_PER_CPU;
	g.n_rings++;
	assert_int_equal(ky_geometry_init(&g), -EINVAL);
}

/* Positions and counts whose low halves pass 2^32. */
static void test_beyond_32_bits(void **state)
{
	struct ring *r = ring_new();
	uint64_t pos = ((uint64_t)1 << 32) - BLOCK, count = ((uint64_t)1 << 32) - 1;
	struct ky_drain_piece p;

	assert_int_equal(ky_drain_resume(&r->drain, pos, count, 77), 0);
	entry_at(r, pos)->used = 100;
	entry_at(r, pos + BLOCK)->begin_ts = 88;
	entry_at(r, pos + BLOCK)->begin_count = count + 5;
	r->ctl->last_ts = 99;
	r->ctl->head = ky_head(pos + BLOCK + 50, count + 7);
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_int_equal(r->drain.head, pos + BLOCK + 50);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.pos, pos);
	assert_int_equal(p.n_events, 5);
	assert_int_equal(p.end_ts, 88);
	ky_drain_take(&r->drain, &p);
	assert_true(ky_drain_next(&r->drain, true, &p));
	assert_int_equal(p.pos, pos + BLOCK);
	assert_int_equal(p.len, 50);
	assert_int_equal(p.n_events, 2);
	assert_int_equal(p.end_ts, 99);
	ky_drain_take(&r->drain, &p);
	assert_int_equal(r->drain.count, count + 7);
	ring_free(r);
}

/* The unused rest of a block is neither read nor written: it may not be in memory yet. */
static void test_snapshot_of_little(void **state)
{
	struct ring *r = ring_new();
	uint8_t *copy = malloc(r->g.total_size), *data = ky_geometry_data(&r->g, copy, 1);
	struct ky_drain d;

	(void)state;
	memset(copy, 0xa5, r->g.total_size);
	entry_at(r, 0)->used = 100;
	entry_at(r, BLOCK)->used = UINT64_MAX; /* invalid */
	r->ctl->head = ky_head(2 * BLOCK + 20, 3);
	assert_int_equal(ky_snapshot_ring(&d, &r->g, r->base, copy, 1, -1), 0);
	assert_int_equal(data[103], 0);
	assert_int_equal(data[104], 0xa5);
	assert_int_equal(data[LIMIT - 1], 0xa5);
	assert_int_equal(data[BLOCK + LIMIT - 1], 0);
	assert_int_equal(data[BLOCK + LIMIT], 0xa5);
	assert_int_equal(data[2 * BLOCK + 23], 0);
	assert_int_equal(data[2 * BLOCK + 24], 0xa5);
	free(copy);
	ring_free(r);
}

/* A reader that continues finds all that the ring has ever lost; later it expects less. */
static void test_lost_before_restart(void **state)
{
	const uint64_t many = (uint64_t)1 << 41;
	struct ring *r = ring_new();

	r->ctl->lost[0] = many;
	assert_int_equal(ky_drain_resume(&r->drain, 0, 0, 0), 0);
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_int_equal(ky_drain_lost(&r->drain), many);
	r->ctl->lost[0] += many;
	assert_int_equal(ky_drain_look(&r->drain, true), 0);
	assert_int_equal(ky_drain_lost(&r->drain), many);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_lost_before_restart),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_early_clock),
		cmocka_unit_test(test_unsettled),
		cmocka_unit_test(test_moving_clock),
		cmocka_unit_test(test_full_blocks),
		cmocka_unit_test(test_left_after_partial),
		cmocka_unit_test(test_wrap_exact),
		cmocka_unit_test(test_hostile_heads),
		cmocka_unit_test(test_hostile_lost),
		cmocka_unit_test(test_hostile_table),
		cmocka_unit_test(test_hostile_end),
		cmocka_unit_test(test_latest_clock),
		cmocka_unit_test(test_scribble),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_rejoin),
		cmocka_unit_test(test_geometry_of_peer),
		cmocka_unit_test(test_geometry_that_spreads),
		cmocka_unit_test(test_many_rings),
		cmocka_unit_test(test_beyond_32_bits),
		cmocka_unit_test(test_snapshot_of_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
