/* SPDX-License-Identifier: MIT */
/*
 * Tests rings that spread: a ring stays in its home blocks while the consumer keeps up, uses all of
 * its blocks before it discards an event, and returns. The consumer finds each record once
 * and in order, however it reads. In overwrite mode, a ring uses as many blocks as the session
 * daemon says.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ring/snapshot.h"
#include "ring/test-fixture.h"

#define BLOCK  4096u
#define BLOCKS 16u
#define HOME   4u

struct spread {
	struct fixture f;
	struct ky_drain drain;
	uint32_t cpu;
	uint64_t n_read;
	uint64_t visited; /* bit i: records of block i were read */
	cpu_set_t all;
};

static void spread_setup(struct spread *s, uint32_t n_home, uint32_t n_blocks)
{
	cpu_set_t one;

	sched_getaffinity(0, sizeof(s->all), &s->all);
	s->cpu = (uint32_t)sched_getcpu();
	CPU_ZERO(&one);
	CPU_SET(s->cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	setup(&s->f, KY_SET_PER_CPU, KY_CLOCK_MONOTONIC, (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
		n_blocks, BLOCK);
	s->f.set.geo.n_home = n_home;
	ky_drain_init(&s->drain, &s->f.set.geo, s->f.set.base, s->cpu);
	s->n_read = s->visited = 0;
}

static void spread_teardown(struct spread *s)
{
	teardown(&s->f);
	sched_setaffinity(0, sizeof(s->all), &s->all);
}

static void emit_n(struct spread *s, uint32_t n)
{
	while (n--)
		emit(&s->f, 0);
}

static uint64_t bit_of_block(const struct spread *s, uint64_t pos)
{
	return (uint64_t)1 << pos / BLOCK % s->f.set.geo.n_blocks;
}

/* Checks that the records of a piece follow those that were read before. */
static void read_piece(struct spread *s, const struct ky_drain_piece *piece)
{
	const uint8_t *p = piece->data, *end = p + piece->len;
	struct payload v;

	for (; p < end; p += PAYLOAD) {
		p += (*p & KY_ID_EXTENDED) == KY_ID_EXTENDED ? KY_HEADER_EXTENDED
							     : KY_HEADER_COMPACT;
		memcpy(&v, p, PAYLOAD);
		if (!lost(&s->f))
			assert_int_equal(v.seq, s->n_read);
		s->n_read++;
	}
	s->visited |= bit_of_block(s, piece->pos);
}

/* Reads at most n pieces, and informs the writer. */
static void consume_pieces(struct spread *s, bool partial, uint32_t n)
{
	struct ky_drain *d = &s->drain;
	struct ky_drain_piece piece;

	assert_int_equal(ky_drain_look(d, partial), 0);
	while (n-- && ky_drain_next(d, partial, &piece)) {
		read_piece(s, &piece);
		ky_drain_take(d, &piece);
	}
	__atomic_store_n(&s->f.consumed[s->cpu], d->pos, __ATOMIC_RELEASE);
}

static void test_stays_home(void **state)
{
	struct spread s;

	spread_setup(&s, HOME, BLOCKS);
	for (int i = 0; i < 2000; i++) {
		emit_n(&s, 100); /* less than half a block */
		consume_pieces(&s, i % 3 == 0, UINT32_MAX);
	}
	consume_pieces(&s, true, UINT32_MAX);
	assert_int_equal(s.n_read, s.f.emitted[0]);
	assert_int_equal(s.visited, (1u << HOME) - 1);
	spread_teardown(&s);
}

/* Returns the number of events that are recorded until the first is discarded. */
static uint64_t fill_until_lost(struct spread *s)
{
	uint64_t before = s->f.emitted[0], n_lost = lost(&s->f);

	while (lost(&s->f) == n_lost)
		emit(&s->f, 0);
	return s->f.emitted[0] - before - 1;
}

static void test_uses_all_blocks(void **state)
{
	const uint64_t in_block = KY_BLOCK_LIMIT(BLOCK) / (PAYLOAD + KY_HEADER_COMPACT);
	struct spread s;

	/* wherever the writer was when the consumer stopped */
	for (uint32_t start = 0; start < 3 * HOME * in_block; start += 97) {
		spread_setup(&s, HOME, BLOCKS);
		for (uint32_t i = 0; i < start; i += 97) {
			emit_n(&s, 97);
			consume_pieces(&s, true, UINT32_MAX);
		}
		assert_true(fill_until_lost(&s) >= (BLOCKS - 1) * (in_block - 2));
		consume_pieces(&s, true, UINT32_MAX);
		assert_int_equal(s.n_read + lost(&s.f), s.f.emitted[0]);
		assert_true(fill_until_lost(&s) >= (BLOCKS - 1) * (in_block - 2));
		consume_pieces(&s, true, UINT32_MAX);
		assert_int_equal(s.n_read + lost(&s.f), s.f.emitted[0]);
		spread_teardown(&s);
	}
}

static void test_returns_home(void **state)
{
	struct spread s;

	spread_setup(&s, HOME, BLOCKS);
	fill_until_lost(&s);
	consume_pieces(&s, true, UINT32_MAX);
	assert_int_equal(s.visited, (1u << BLOCKS) - 1);
	for (int i = 0; i < 2 * (int)BLOCKS; i++) {
		s.visited = i < 6 ? 0 : s.visited;
		emit_n(&s, 100);
		consume_pieces(&s, true, UINT32_MAX);
	}
	assert_int_equal(s.visited & ~((1u << HOME) - 1), 0);
	spread_teardown(&s);
}

/* Returns whether a block lies outside of the chain from the reader to the writer. */
static bool has_free_block(struct spread *s)
{
	struct ky_drain d = s->drain;
	struct ky_drain_piece piece;
	uint64_t in_use = bit_of_block(s, d.pos);

	assert_int_equal(ky_drain_look(&d, true), 0);
	while (ky_drain_next(&d, false, &piece)) {
		in_use |= bit_of_block(s, piece.pos);
		ky_drain_take(&d, &piece);
	}
	in_use |= bit_of_block(s, d.head);
	return in_use != ((uint64_t)2 << (s->f.set.geo.n_blocks - 1)) - 1;
}

/*
 * The consumer reads as much as chance wants. No event is discarded while a block is free, so the
 * distance of the head never comes to the limit.
 */
static void run_at_random(uint32_t n_home, uint32_t n_blocks, unsigned int seed)
{
	struct spread s;
	uint64_t n_lost = 0, far = 0;

	spread_setup(&s, n_home, n_blocks);
	for (int i = 0; i < 3000; i++) {
		uint32_t n = (uint32_t)rand_r(&seed) % (rand_r(&seed) % 8 ? 300 : 3000);

		while (n--) {
			emit(&s.f, 0);
			if (lost(&s.f) == n_lost)
				continue;
			assert_false(has_free_block(&s));
			n_lost = lost(&s.f);
			n = 0;
			break;
		}
		consume_pieces(&s, rand_r(&seed) % 2, (uint32_t)rand_r(&seed) % (n_blocks + 2));
		far = KY_MAX(far, s.drain.head - s.drain.pos);
		if (!s.f.set.geo.overwrite && i % 100 == 0)
			consume_pieces(&s, true, UINT32_MAX);
	}
	consume_pieces(&s, true, UINT32_MAX);
	assert_int_equal(s.n_read + lost(&s.f), s.f.emitted[0]);
	assert_true(far <= (KY_RING_LAPS - 1) * s.f.set.geo.data_stride);
	spread_teardown(&s);
}

static void test_random(void **state)
{
	for (unsigned int seed = 1; seed <= 12; seed++) {
		run_at_random(2, 4, seed);
		run_at_random(2, 16, seed);
		run_at_random(4, 16, seed);
		run_at_random(15, 16, seed);
		run_at_random(7, 32, seed);
	}
}

/* A reader that begins again where the last one stopped finds the same blocks. */
static void test_resume(void **state)
{
	struct spread s;

	spread_setup(&s, HOME, BLOCKS);
	for (int i = 0; i < 2000; i++) {
		emit_n(&s, (uint32_t)(i * 37) % 400);
		consume_pieces(&s, i % 3 == 0, (uint32_t)i % 5);
		if (i % 7 == 0)
			consume_pieces(&s, true, UINT32_MAX);
		if (i % 2) {
			struct ky_drain before = s.drain;

			ky_drain_init(&s.drain, &s.f.set.geo, s.f.set.base, s.cpu);
			assert_int_equal(
				ky_drain_resume(&s.drain, before.pos, before.count, before.ts), 0);
		}
	}
	consume_pieces(&s, true, UINT32_MAX);
	assert_int_equal(lost(&s.f), 0);
	assert_int_equal(s.n_read, s.f.emitted[0]);
	spread_teardown(&s);
}

/* An application has overwritten the table: the ring is given up, and nothing else happens. */
static void test_damaged_chain(void **state)
{
	const uint64_t wrong[] = {1, BLOCK + 1, BLOCK / 2, UINT64_MAX, ~(uint64_t)(BLOCK - 1)};
	struct spread s;

	for (size_t i = 0; i < KY_ARRAY_SIZE(wrong); i++) {
		struct ky_drain_piece piece;

		spread_setup(&s, HOME, BLOCKS);
		emit_n(&s, 1000);
		ky_geometry_entry(&s.f.set.geo, s.f.set.base, s.cpu, 0)->next = wrong[i];
		assert_int_equal(ky_drain_look(&s.drain, true), 0);
		assert_false(ky_drain_next(&s.drain, true, &piece));
		assert_int_equal(ky_drain_look(&s.drain, true), -EBADMSG);
		emit_n(&s, 10);
		assert_int_equal(ky_drain_look(&s.drain, true), -EBADMSG);
		assert_int_equal(s.drain.n_abandoned, 10);
		spread_teardown(&s);
	}
}

/* Copies the ring, and checks that the copy has the newest events, without a gap. */
static void check_snapshot(struct spread *s, uint32_t at_least, uint32_t at_most)
{
	const uint64_t in_block = KY_BLOCK_LIMIT(BLOCK) / (PAYLOAD + KY_HEADER_COMPACT);
	const struct ky_geometry *g = &s->f.set.geo;
	void *copy = map(g->total_size);
	struct tally tally = {.seen = {0}};
	struct ky_drain_piece piece;

	assert_int_equal(ky_snapshot_ring(&s->drain, g, s->f.set.base, copy, s->cpu, -1), 0);
	assert_int_equal(s->drain.count, gone(&s->f, s->cpu));
	s->n_read = s->drain.count;
	s->visited = 0;
	assert_int_equal(ky_drain_look(&s->drain, true), 0);
	while (ky_drain_next(&s->drain, true, &piece)) {
		read_piece(s, &piece);
		ky_drain_take(&s->drain, &piece);
	}
	assert_int_equal(s->n_read, s->f.emitted[0]);
	assert_int_equal(s->visited & ~((UINT64_C(1) << at_most) - 1), 0);
	/* all but the block that is written, and one that may just have been given up */
	assert_true(s->n_read - gone(&s->f, s->cpu) >=
		    KY_MIN(s->n_read, (at_least - 2) * (in_block - 2)));
	assert_int_equal(walk(&s->f, s->cpu, PAYLOAD, count_payload, &tally),
		s->n_read - gone(&s->f, s->cpu));
	unmap(copy, g->total_size);
}

static void test_overwrites(void **state)
{
	/* also what an application may have written there */
	static const uint64_t n_used[] = {0, 1, 5, 8, 8, BLOCKS, UINT64_MAX, 3, 12};
	struct spread s;
	uint32_t n;

	spread_setup(&s, HOME, BLOCKS);
	s.f.set.geo.overwrite = 1;
	start(&s.f, EVENT);
	for (size_t i = 0; i < KY_ARRAY_SIZE(n_used); i++) {
		ky_geometry_ctl(&s.f.set.geo, s.f.set.base, s.cpu)->n_used = n_used[i];
		for (n = 0; n < 40; n++) {
			emit_n(&s, 97);
			check_snapshot(&s, HOME, BLOCKS);
		}
		n = (uint32_t)KY_MIN(KY_MAX(n_used[i], (uint64_t)HOME), (uint64_t)BLOCKS);
		emit_n(&s, 20000);
		check_snapshot(&s, n, n);
	}
	assert_int_equal(lost(&s.f), 0);
	spread_teardown(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays_home),
		cmocka_unit_test(test_uses_all_blocks),
		cmocka_unit_test(test_returns_home),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_damaged_chain),
		cmocka_unit_test(test_overwrites),
	};

	ky_writer_init();
	if (!ky_writer_has_rseq()) {
		print_message("# SKIP: no restartable sequences\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
