/* SPDX-License-Identifier: MIT */
/*
 * Writers and the reader's side at the same time: threads record into small rings while another
 * drains them, now whole blocks, now everything. Written + lost = attempted, each record once and
 * in order, clocks within the pieces that hold them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "ring/drain.h"
#include "ring/writer.h"

#define N_THREADS 4
#define N_RECORDS 200000
#define N_RINGS	  64
#define EVENT	  7
#define PAYLOAD	  12

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
	bool done;
};

struct worker {
	struct live *live;
	uint32_t number;
	pthread_t thread;
};

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static struct live *live_new(uint32_t mode)
{
	struct live *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->set.geo = (struct ky_geometry){
		.mode = mode,
		.n_rings = N_RINGS,
		.n_blocks = 4,
		.block_size = 16384,
	};
	assert_int_equal(ky_geometry_init(&l->set.geo), 0);
	l->set.id = 1;
	l->set.base = map(l->set.geo.total_size);
	l->consumed = map(N_RINGS * sizeof(uint64_t));
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

static void *work(void *arg)
{
	struct worker *w = arg;

	for (uint64_t i = 0; i < N_RECORDS; i++) {
		struct payload p = {.writer = w->number, .seq = i};

		ky_record(&w->live->hook, &p, PAYLOAD, NULL, 0);
	}
	ky_thread_release(&w->live->set);
	return NULL;
}

/* Header and clock of the record at p, after one at *ts; returns where its payload begins. */
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

static void *drain(void *arg)
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

static void run(uint32_t mode)
{
	struct live *l = live_new(mode);
	struct worker w[N_THREADS];
	uint64_t lost = 0, seen = 0;
	pthread_t drainer;

	assert_int_equal(pthread_create(&drainer, NULL, drain, l), 0);
	for (uint32_t i = 0; i < N_THREADS; i++) {
		w[i] = (struct worker){.live = l, .number = i};
		assert_int_equal(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (uint32_t i = 0; i < N_THREADS; i++)
		pthread_join(w[i].thread, NULL);
	__atomic_store_n(&l->done, true, __ATOMIC_RELEASE);
	pthread_join(drainer, NULL);
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
	run(KY_SET_PER_CPU);
}

static void test_per_thread(void **state)
{
	run(KY_SET_PER_THREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_per_cpu),
		cmocka_unit_test(test_per_thread),
	};

	ky_writer_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
