/* SPDX-License-Identifier: MIT */
/*
 * Tests writers and the reader's side at the same time. Threads record into small rings while
 * another thread drains them: sometimes whole blocks, sometimes everything. Written + lost =
 * attempted; each record is found once and in order; clocks lie within the pieces that hold them.
 * In other tests, a thread takes snapshots of rings that are overwritten all the time: a snapshot's
 * content is whole and without gaps.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "ring/snapshot.h"
#include "ring/writer.h"

#define N_THREADS 4
#define N_RECORDS 200000
/* of a writer that waits until a snapshot has met it */
#define N_MOST	(500 * (uint64_t)N_RECORDS)
#define N_RINGS 64
#define EVENT	7
#define PAYLOAD 12

struct payload {
	uint32_t writer;
	uint64_t seq;
	uint8_t slack[KYMO_SCRATCH_SLACK];
} __attribute__((packed));

struct live {
	struct ky_set set;
	struct ky_hook hook;
	uint64_t *consumed;
	struct ky_drain drain[N_RINGS];
	uint64_t last_ts[N_RINGS];
	uint64_t next[N_RINGS][N_THREADS]; /* in one ring, a writer's numbers rise */
	uint64_t seen[N_THREADS];
	uint64_t n_events, n_partial;
	uint64_t n_cut; /* snapshots that lack blocks because these were overwritten meanwhile */
	uint64_t emitted[N_THREADS];
	void *copy;
	bool pinned; /* all records of a writer are in one ring */
	bool done;
};

struct worker {
	struct live *live;
	uint32_t number;
	pthread_t thread;
};

static void *map_shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* n_home: blocks that a spreading ring uses first; 0: all */
static struct live *live_new(uint32_t mode, uint32_t n_home)
{
	struct live *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->set.geo = (struct ky_geometry){
		.mode = mode,
		.n_rings = N_RINGS,
		.n_blocks = n_home ? 16 : 4,
		.n_home = n_home,
		.block_size = 16384,
	};
	assert_int_equal(ky_geometry_init(&l->set.geo), 0);
	l->set.id = 1;
	l->set.base = map_shared_memory(l->set.geo.total_size);
	ky_parts_set_whole(&l->set.parts, l->set.base);
	l->consumed = map_shared_memory(N_RINGS * sizeof(uint64_t));
	l->set.consumed = l->consumed;
	l->set.used = calloc(N_RINGS, 1);
	for (uint32_t i = 0; i < N_RINGS; i++)
		ky_drain_init(&l->drain[i], &l->set.geo, l->set.base, i);
	ky_writer_init();
	ky_thread_set_process();
	ky_hook_init(&l->hook, &l->set, EVENT);
	ky_hook_switch(&l->hook, true);
	return l;
}

static void live_free(struct live *l)
{
	munmap(l->set.base, l->set.geo.total_size);
	munmap(l->consumed, N_RINGS * sizeof(uint64_t));
	free(l->set.used);
	free(l);
}

/* Binds the thread to one of the CPUs that may be used. */
static void pin_thread(uint32_t number)
{
	cpu_set_t allowed, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (uint32_t n = number % (uint32_t)CPU_COUNT(&allowed) + 1; n; n--)
		while (!CPU_ISSET(++cpu, &allowed))
			;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/*
 * Returns true when the writer may stop: a snapshot has met a writer that overwrote what was
 * copied.
 */
static bool is_enough(const struct live *l, uint64_t n)
{
	return n >= N_MOST ||
	       (n >= N_RECORDS && (!l->pinned || __atomic_load_n(&l->n_cut, __ATOMIC_RELAXED)));
}

static void *record_events(void *arg)
{
	struct worker *w = arg;
	uint64_t *n = &w->live->emitted[w->number];

	if (w->live->pinned)
		pin_thread(w->number);
	for (; !is_enough(w->live, *n); ++*n) {
		struct payload p = {.writer = w->number, .seq = *n};

		ky_record(&w->live->hook, &p, PAYLOAD, NULL, 0);
	}
	ky_thread_release(&w->live->set);
	return NULL;
}

/*
 * Reads the header and clock of the record at p, which follows one at *ts. Returns the begin of its
 * payload.
 */
static const uint8_t *read_header(const uint8_t *p, uint32_t *id, uint64_t *ts)
{
	uint32_t word;

	if ((p[0] & KY_ID_EXTENDED) == KY_ID_EXTENDED) {
		memcpy(id, p + 1, 4);
		memcpy(ts, p + 5, 8);
		return p + KY_HEADER_EXTENDED;
	}
	memcpy(&word, p, 4);
	*id = word & KY_ID_EXTENDED;
	*ts += ((word >> KY_ID_BITS) - *ts) & ((1u << KY_TS_BITS) - 1);
	return p + KY_HEADER_COMPACT;
}

static void check_piece(struct live *l, uint32_t ring, const struct ky_drain_piece *piece)
{
	const uint8_t *p = piece->data, *end = p + piece->len;
	uint64_t ts = piece->begin_ts, n = 0;
	struct payload v;
	uint32_t id;

	assert_true(piece->begin_ts >= l->last_ts[ring]);
	for (; p < end; n++) {
		p = read_header(p, &id, &ts);
		memcpy(&v, p, PAYLOAD);
		p += PAYLOAD;
		assert_int_equal(id, EVENT);
		assert_true(v.writer < N_THREADS);
		if (l->pinned && l->next[ring][v.writer])
			assert_int_equal(v.seq, l->next[ring][v.writer]);
		assert_true(v.seq >= l->next[ring][v.writer]);
		l->next[ring][v.writer] = v.seq + 1;
		l->seen[v.writer]++;
	}
	assert_ptr_equal(p, end);
	assert_true(ts <= piece->end_ts);
	assert_int_equal(n, piece->n_events);
	l->last_ts[ring] = piece->end_ts;
	l->n_events += n;
}

static void drain_ring(struct live *l, uint32_t i, bool partial)
{
	struct ky_drain *d = &l->drain[i];
	struct ky_drain_piece piece;

	assert_int_equal(ky_drain_look(d, partial), 0);
	while (ky_drain_next(d, partial, &piece)) {
		check_piece(l, i, &piece);
		l->n_partial += piece.next == piece.pos + piece.len;
		ky_drain_take(d, &piece);
		__atomic_store_n(&l->consumed[i], d->pos, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&l->consumed[i], d->pos, __ATOMIC_RELEASE);
}

static void *drain_all(void *arg)
{
	struct live *l = arg;
	bool last;
	unsigned int round = 0;

	do {
		last = __atomic_load_n(&l->done, __ATOMIC_ACQUIRE);
		for (uint32_t i = 0; i < N_RINGS; i++)
			drain_ring(l, i, last || round % 8 == 0);
		round++;
	} while (!last);
	return NULL;
}

/* Runs all writers while another thread reads. */
static void write_all(struct live *l, void *(*read)(void *live))
{
	struct worker w[N_THREADS];
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, read, l), 0);
	for (uint32_t i = 0; i < N_THREADS; i++) {
		w[i] = (struct worker){.live = l, .number = i};
		assert_int_equal(pthread_create(&w[i].thread, NULL, record_events, &w[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		pthread_join(w[i].thread, NULL);
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	pthread_join(reader, NULL);
}

static void run_ring(uint32_t mode, uint32_t n_home)
{
	struct live *l = live_new(mode, n_home);
	uint64_t lost = 0, seen = 0;

	write_all(l, drain_all);
	for (uint32_t i = 0; i < N_RINGS; i++)
		lost += ky_drain_lost(&l->drain[i]);
	for (uint32_t i = 0; i < N_THREADS; i++)
		seen += l->seen[i];
	assert_int_equal(seen, l->n_events);
	assert_int_equal(seen + lost, N_THREADS * N_RECORDS);
	assert_true(l->n_partial > 0);
	live_free(l);
}

static void test_per_cpu(void **state)
{
	if (!ky_writer_has_rseq())
		skip();
	run_ring(KY_SET_PER_CPU, 0);
}

static void test_spreading(void **state)
{
	if (!ky_writer_has_rseq())
		skip();
	run_ring(KY_SET_PER_CPU, 2);
	run_ring(KY_SET_PER_CPU, 3);
}

static void test_per_thread(void **state)
{
	run_ring(KY_SET_PER_THREAD, 0);
}

/*
 * Checks each record of a ring's snapshot. Returns their number, including those that were
 * overwritten. last: no writer is left. Before that, a reader that is always preempted finds
 * nothing whole.
 */
static uint64_t snapshot_ring(struct live *l, uint32_t i, bool last)
{
	uint64_t oldest = __atomic_load_n(
		&ky_geometry_ctl(&l->set.geo, l->set.base, i)->oldest, __ATOMIC_ACQUIRE);
	struct ky_drain d;
	struct ky_drain_piece piece;
	int ret = ky_snapshot_ring(&d, &l->set.geo, l->set.base, l->copy, i, -1);

	if (ret == -ENODATA && !last)
		return 0;
	if (ret) /* cmocka does not show what fails in a thread */
		fprintf(stderr, "snapshot of ring %u: %s\n", i, strerror(-ret));
	assert_int_equal(ret, 0);
	__atomic_fetch_add(&l->n_cut, d.pos > oldest, __ATOMIC_RELAXED);
	assert_int_equal(ky_drain_look(&d, true), 0);
	memset(l->next[i], 0, sizeof(l->next[i]));
	l->last_ts[i] = 0;
	while (ky_drain_next(&d, true, &piece)) {
		check_piece(l, i, &piece);
		ky_drain_take(&d, &piece);
	}
	assert_int_equal(d.pos, d.head);
	assert_int_equal(d.count, d.head_count);
	return d.count;
}

static void *take_snapshots(void *arg)
{
	struct live *l = arg;
	uint64_t total;
	bool last;

	do {
		last = __atomic_load_n(&l->done, __ATOMIC_ACQUIRE);
		total = 0;
		for (uint32_t i = 0; i < N_RINGS; i++)
			total += snapshot_ring(l, i, last);
	} while (!last);
	for (uint32_t i = 0; i < N_THREADS; i++)
		total -= l->emitted[i];
	assert_int_equal(total, 0);
	return NULL;
}

static void run_overwrite(uint32_t mode)
{
	struct live *l = live_new(mode, 0);

	l->set.geo.overwrite = 1;
	l->pinned = true;
	l->copy = map_shared_memory(l->set.geo.total_size);
	write_all(l, take_snapshots);
	assert_true(l->n_events > 0);
	assert_true(l->n_cut > 0);
	munmap(l->copy, l->set.geo.total_size);
	live_free(l);
}

static void test_snapshots_per_cpu(void **state)
{
	if (!ky_writer_has_rseq())
		skip();
	run_overwrite(KY_SET_PER_CPU);
}

static void test_snapshots_per_thread(void **state)
{
	run_overwrite(KY_SET_PER_THREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_per_cpu),
		cmocka_unit_test(test_spreading),
		cmocka_unit_test(test_per_thread),
		cmocka_unit_test(test_snapshots_per_cpu),
		cmocka_unit_test(test_snapshots_per_thread),
	};

	ky_writer_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
