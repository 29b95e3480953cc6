/* SPDX-License-Identifier: MIT */
/* When the consumer looks at a source, and how much it writes then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "consumerd/stream/pace.h"
#include "svc/loop.h"

#define BLOCK  (256u << 10)
#define BLOCKS 8u
#define SECOND (1000 * KY_NS_PER_MS)

/* A source, and a consumer that looks at it when the pace says so, and writes what is due. */
struct model {
	struct source source;
	struct pace pace;
	uint64_t now_ns;
	uint64_t pos, seen, taken; /* of the writer; at the last look; written */
	unsigned int n_looks, n_writes;
};

static void begin_model(struct model *m, uint64_t capacity)
{
	*m = (struct model){
		.source = {.block_size = BLOCK, .n_blocks = BLOCKS, .capacity = capacity}};
	pace_init(&m->pace, 0);
}

static void look_at_ring(struct model *m)
{
	bool due;

	m->source.n_ready = (uint32_t)(m->pos / BLOCK - m->taken / BLOCK);
	pace_measure(&m->pace, &m->source, m->pos - m->seen, m->now_ns);
	m->seen = m->pos;
	due = pace_is_due(&m->pace, &m->source);
	m->n_looks++;
	if (due) {
		m->n_writes++;
		m->taken = m->pos / BLOCK * BLOCK;
	}
	m->now_ns += pace_wait_ns(&m->pace, &m->source, due);
}

/* Lets writers record at this rate for a time, and counts what the consumer does. */
static void run_model(struct model *m, uint64_t bytes_per_ms, uint64_t ns)
{
	uint64_t end = m->now_ns + ns;

	m->n_looks = m->n_writes = 0;
	while (m->now_ns < end) {
		uint64_t before = m->now_ns;

		look_at_ring(m);
		assert_true(m->now_ns > before);
		m->pos += (m->now_ns - before) * bytes_per_ms / KY_NS_PER_MS;
	}
}

static void test_steady_writers_wake_it_once_for_a_write(void **state)
{
	struct model m;

	begin_model(&m, 64u << 20);
	run_model(&m, 64u << 10, SECOND);
	run_model(&m, 64u << 10, 10 * SECOND);
	assert_in_range(m.n_writes, 500, 650); /* a MiB each */
	assert_in_range(m.n_looks, m.n_writes, m.n_writes + m.n_writes / 10);
}

static void test_an_idle_source_is_looked_at_seldom(void **state)
{
	struct model m;

	begin_model(&m, 64u << 20);
	run_model(&m, 0, SECOND);
	run_model(&m, 0, 10 * SECOND);
	assert_in_range(m.n_looks, 1, 600);
	assert_int_equal(m.n_writes, 0);
}

/* Writers of four bytes in a nanosecond cannot fill the source before the look. */
static void test_there_is_room_for_a_sudden_burst(void **state)
{
	static const uint64_t capacities[] = {BLOCK * BLOCKS, 8u << 20, 16u << 20, 64u << 20};
	struct model m;

	for (size_t i = 0; i < KY_ARRAY_SIZE(capacities); i++) {
		begin_model(&m, capacities[i]);
		run_model(&m, 0, 10 * SECOND);
		look_at_ring(&m);
		assert_in_range(pace_wait_ns(&m.pace, &m.source, false), 1,
			KY_MAX(capacities[i] / 4, 4 * KY_NS_PER_MS));
	}
}

static void test_what_cannot_grow_is_kept_nearly_empty(void **state)
{
	struct model m;

	begin_model(&m, BLOCK * BLOCKS);
	run_model(&m, 64u << 10, SECOND);
	assert_in_range(m.n_writes, 3 * SECOND / 4 / (4 * KY_NS_PER_MS), UINT32_MAX);
	m.source.n_ready = 1;
	assert_true(pace_is_due(&m.pace, &m.source));
	begin_model(&m, 64u << 20);
	run_model(&m, 0, SECOND);
	m.source.n_ready = 1;
	assert_false(pace_is_due(&m.pace, &m.source));
	/* A loss shows that it does not grow. */
	m.source.lost[KY_LOST_FULL] = 1;
	assert_true(pace_is_due(&m.pace, &m.source));
	m.source.n_ready = 0;
	assert_in_range(pace_wait_ns(&m.pace, &m.source, false), 1, 4 * KY_NS_PER_MS);
}

/* However few blocks it has, four looks come in the time in which it fills. */
static void test_what_cannot_grow_is_looked_at_in_time(void **state)
{
	struct model m;

	for (uint32_t n = 2; n <= BLOCKS; n *= 2) {
		begin_model(&m, BLOCK * n);
		m.source.n_blocks = n;
		run_model(&m, BLOCK * n / 8, SECOND); /* full in 8 ms */
		assert_in_range(m.n_looks, 4 * 1000 / 8, UINT32_MAX);
	}
}

/* After a burst that filled it, the next one finds a consumer that looks often. */
static void test_what_cannot_grow_remembers_bursts(void **state)
{
	struct model m;

	begin_model(&m, BLOCK * BLOCKS);
	run_model(&m, 64u << 10, SECOND);
	run_model(&m, 1u << 20, 4 * KY_NS_PER_MS);
	run_model(&m, 64u << 10, 100 * KY_NS_PER_MS);
	assert_in_range(pace_wait_ns(&m.pace, &m.source, false), 1, 2 * KY_NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steady_writers_wake_it_once_for_a_write),
		cmocka_unit_test(test_an_idle_source_is_looked_at_seldom),
		cmocka_unit_test(test_there_is_room_for_a_sudden_burst),
		cmocka_unit_test(test_what_cannot_grow_is_kept_nearly_empty),
		cmocka_unit_test(test_what_cannot_grow_is_looked_at_in_time),
		cmocka_unit_test(test_what_cannot_grow_remembers_bursts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
