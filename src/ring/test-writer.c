/* SPDX-License-Identifier: MIT */
/*
 * Tests the writers against a plain walk over the memory. Every record that was reported as written
 * is there once, whole, in order of time. Written + lost = attempted. This holds under signals,
 * migration and threads.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unwind.h>

#include "base/clock.h"
#include "ring/slots.h"
#include "ring/test-fixture.h"
#include "ring/wait.h"

/* Checks that each emitted event is in the rings, or was overwritten, or is counted as lost. */
static void check_all(struct fixture *f, bool expect_lost)
{
	struct tally t = {0};
	uint64_t seen = 0, emitted = 0, overwritten = 0;

	if (expect_lost)
		assert_true(lost(f) > 0);
	else
		assert_int_equal(lost(f), 0);
	for (uint32_t i = 0; i < f->set.geo.n_rings; i++) {
		memset(t.next, 0, sizeof(t.next));
		overwritten += gone(f, i);
		walk(f, i, PAYLOAD, count_payload, &t);
	}
	for (int w = 0; w < N_WRITERS; w++) {
		seen += t.seen[w];
		emitted += f->emitted[w];
		if (!expect_lost && !f->set.geo.overwrite)
			assert_int_equal(t.seen[w], f->emitted[w]);
	}
	assert_int_equal(seen + overwritten + lost(f), emitted);
}

static uint32_t n_cpus(void)
{
	return (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
}

static const struct {
	uint32_t mode, clock;
	bool general;
} kinds[] = {
	{KY_SET_PER_CPU, KY_CLOCK_TSC, false},
	{KY_SET_PER_CPU, KY_CLOCK_MONOTONIC, false},
	{KY_SET_PER_CPU, KY_CLOCK_TSC, true},
	{KY_SET_PER_THREAD, KY_CLOCK_TSC, false},
	{KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, false},
};

/*
 * An rseq area for kernels and emulators without restartable sequences. The writers' code still
 * runs on it as long as nothing interrupts it: one thread, no signals.
 */
static __thread struct {
	uint32_t cpu_id_start, cpu_id;
	uint64_t rseq_cs;
} stand_in __attribute__((aligned(32)));

static bool real_rseq;

static void init_rseq(void)
{
	ky_writer_init();
	real_rseq = ky_writer_has_rseq();
#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
	if (!real_rseq)
		ky_rseq_offset = (char *)&stand_in - (char *)__builtin_thread_pointer();
#else
	(void)stand_in;
#endif
}

static bool is_usable_kind(int kind)
{
#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
	(void)kind;
	return true;
#else
	return kinds[kind].mode == KY_SET_PER_THREAD;
#endif
}

#define N_KINDS ((int)KY_ARRAY_SIZE(kinds))

static bool interruptible(int kind)
{
	return kinds[kind].mode == KY_SET_PER_THREAD || real_rseq;
}

static void setup_kind(struct fixture *f, int kind, uint32_t n_blocks, uint32_t block_size)
{
	uint32_t clock = kinds[kind].clock == KY_CLOCK_TSC ? ky_clock_of_machine()
							   : KY_CLOCK_MONOTONIC;

	setup(f, kinds[kind].mode, clock, kinds[kind].mode == KY_SET_PER_CPU ? n_cpus() : 32,
		n_blocks, block_size);
	f->general = kinds[kind].general;
	start(f, EVENT);
}

/* The layout does not depend on `overwrite`. */
static void setup_overwrite(struct fixture *f, int kind, uint32_t n_blocks, uint32_t block_size)
{
	setup_kind(f, kind, n_blocks, block_size);
	f->set.geo.overwrite = 1;
}

/* Binds the thread to its current CPU. Returns the CPUs that it may use, for unpin(). */
static cpu_set_t pin_to_current_cpu(void)
{
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	return all;
}

static void unpin(cpu_set_t all)
{
	sched_setaffinity(0, sizeof(all), &all);
}

static void test_plain(void **state)
{
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		if (!is_usable_kind(k))
			continue;
		setup_kind(&f, k, 64, 4096);
		for (int i = 0; i < 5000; i++)
			emit(&f, 0);
		check_all(&f, false);
		teardown(&f);
	}
}

static void test_full_then_free(void **state)
{
	cpu_set_t all = pin_to_current_cpu(); /* one ring, which becomes full */
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		uint64_t before;

		if (!is_usable_kind(k))
			continue;
		setup_kind(&f, k, 2, 4096);
		for (int i = 0; i < 5000; i++)
			emit(&f, 0);
		check_all(&f, true);
		/*
		 * One block consumed in each ring: exactly one block's worth of records fits again.
		 */
		before = lost(&f);
		for (uint32_t i = 0; i < f.set.geo.n_rings; i++)
			f.consumed[i] = 4096;
		emit(&f, 0);
		assert_int_equal(lost(&f), before);
		teardown(&f);
	}
	unpin(all);
}

static ky_write_fn write_here;
static int n_moves;

/* Acts as if the thread found one CPU's block full and then moved to another CPU. */
static int write_elsewhere(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts)
{
	if (n_moves-- > 0)
		return KY_WRITE_FULL;
	return write_here(hook, payload, len, pieces, n_pieces, ts);
}

/* The other CPU has room: nothing is lost, and the block is not left. */
static void test_full_elsewhere(void **state)
{
	cpu_set_t all;
	struct fixture f;

	if (!is_usable_kind(1))
		skip();
	all = pin_to_current_cpu();
	setup_kind(&f, 1, 2, 4096);
	for (int i = 0; i < 300; i++)
		emit(&f, 0);
	assert_int_equal(lost(&f), 0);
	write_here = f.hook.write;
	f.hook.write = write_elsewhere;
	f.general = true;
	n_moves = 2;
	emit(&f, 0);
	assert_int_equal(n_moves, -1);
	check_all(&f, false);
	teardown(&f);
	unpin(all);
}

static void keep_last(void *arg, uint32_t id, const uint8_t *payload)
{
	struct payload p;

	memcpy(&p, payload, PAYLOAD);
	*(uint64_t *)arg = KY_MAX(*(uint64_t *)arg, p.seq);
}

/* Lap after lap, the newest records are there, in all blocks except at most one. */
static void test_overwrite(void **state)
{
	static const uint32_t n_blocks[] = {2, 16};
	struct fixture f;

	for (int i = 0; i < 2 * N_KINDS; i++) {
		uint32_t n = n_blocks[i % 2], most = 0;
		uint64_t last = 0;

		if (!is_usable_kind(i / 2))
			continue;
		setup_overwrite(&f, i / 2, n, 4096);
		for (int k = 0; k < 50000; k++) {
			emit(&f, 0);
			if (k % 97 == 0)
				check_all(&f, false);
		}
		for (uint32_t r = 0; r < f.set.geo.n_rings; r++) {
			struct ky_ring_ctl *ctl = ky_geometry_ctl(&f.set.geo, f.set.base, r);

			walk(&f, r, PAYLOAD, keep_last, &last);
			most = KY_MAX(most, (uint32_t)ctl->head - (uint32_t)ctl->oldest);
		}
		assert_int_equal(last, f.emitted[0] - 1);
		assert_true(most > (n - 1) * 4096);
		teardown(&f);
	}
}

/*
 * Sets each ring as if it had been written for long: some records before position and number 2^32.
 */
static uint64_t begin_late(struct fixture *f)
{
	uint64_t pos = ((uint64_t)1 << 32) - 2 * f->set.geo.block_size, n = UINT32_MAX - 99;

	for (uint32_t i = 0; i < f->set.geo.n_rings; i++) {
		struct ky_ring_ctl *ctl = ky_geometry_ctl(&f->set.geo, f->set.base, i);

		*ctl = (struct ky_ring_ctl){
			.head = ky_head(pos, n), .oldest = pos, .reserve = ky_head(pos, n)};
		ky_geometry_entry(&f->set.geo, f->set.base, i, pos)->begin_count = n;
		f->consumed[i] = pos;
	}
	return n * f->set.geo.n_rings;
}

/* Positions and numbers continue beyond what fits the head. */
static void test_beyond_32_bits(void **state)
{
	/* a ring that did not wrap does not hold what begin_late() says */
	cpu_set_t all = pin_to_current_cpu();
	struct fixture f;

	for (int i = 0; i < 2 * N_KINDS; i++) {
		bool overwrite = i % 2;

		if (!is_usable_kind(i / 2))
			continue;
		(overwrite ? setup_overwrite : setup_kind)(&f, i / 2, 8, 4096);
		f.emitted[1] = begin_late(&f);
		for (int k = 0; k < 20000; k++)
			emit(&f, 0);
		f.set.geo.overwrite = 1; /* counts earlier records as overwritten */
		check_all(&f, !overwrite);
		teardown(&f);
	}
	unpin(all);
}

static struct fixture *lapping;

/* Records more than the ring holds while the interrupted record is being copied. */
static void lap(void)
{
	for (int i = 0; i < 5000; i++)
		emit(lapping, 1);
}

/*
 * A handler's record never overwrites the record that it interrupted; it is counted as discarded.
 */
static void test_handler_laps(void **state)
{
	struct fixture f;
	struct ky_ring_ctl *ctl;
	uint64_t reserve;

	setup(&f, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, 1, 4, 4096);
	f.set.geo.overwrite = 1;
	lapping = &f;
	lap();
	assert_int_equal(lost(&f), 0);
	/* The state of a record that is reserved but not published. */
	ctl = ky_geometry_ctl(&f.set.geo, f.set.base, 0);
	reserve = (uint32_t)ctl->reserve;
	ctl->reserve += PAYLOAD + KY_HEADER_COMPACT;
	lap();
	assert_true(lost(&f) > 0);
	assert_true(ctl->oldest <= reserve);
	teardown(&f);
}

#define WAIT_NS UINT64_C(20000000)

static uint64_t now_ns(void)
{
	return ky_clock_read(KY_CLOCK_MONOTONIC);
}

/*
 * The ring is full and nobody reads: an event waits for its time, once, and is lost. It does not
 * wait where that is forbidden.
 */
static void test_wait(void **state)
{
	cpu_set_t all = pin_to_current_cpu(); /* another CPU's ring has room */
	struct fixture f;
	uint64_t begin;

	for (int k = 0; k < N_KINDS; k++) {
		if (!is_usable_kind(k))
			continue;
		setup_kind(&f, k, 2, 4096);
		while (!lost(&f))
			emit(&f, 0);
		f.set.wait_ns = WAIT_NS;
		begin = now_ns();
		errno = 4711;
		emit(&f, 0);
		assert_int_equal(errno, 4711);
		assert_true(now_ns() - begin >= WAIT_NS);
		assert_int_equal(lost(&f), 2);
		f.set.wait_ns = UINT64_MAX;
		ky_wait_forbid();
		emit(&f, 0);
		ky_wait_allow();
		assert_int_equal(lost(&f), 3);
		assert_int_equal(f.set.users, 0);
		teardown(&f);
	}
	unpin(all);
}

/* A handler that interrupts a record whose block it needs would wait for itself. */
static void test_wait_in_handler(void **state)
{
	struct fixture f;
	struct ky_ring_ctl *ctl;

	setup(&f, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, 1, 2, 4096);
	start(&f, EVENT);
	emit(&f, 0);
	f.set.wait_ns = UINT64_MAX;
	ctl = ky_geometry_ctl(&f.set.geo, f.set.base, 0);
	ctl->reserve += PAYLOAD + KY_HEADER_COMPACT; /* state of a record that is not published */
	while (lost(&f) < 3)
		emit(&f, 0);
	teardown(&f);
}

static void count_id(void *arg, uint32_t id, const uint8_t *payload)
{
	(void)payload;
	assert_int_equal(id, *(uint32_t *)arg);
}

static void test_ids_and_sizes(void **state)
{
	static const uint32_t ids[] = {0, 30, 31, 32, 1000000};
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		for (size_t i = 0; is_usable_kind(k) && i < KY_ARRAY_SIZE(ids); i++) {
			uint32_t id = ids[i], len;
			uint8_t payload[4096 + KYMO_SCRATCH_SLACK] = {0};

			for (len = 0; len < 40; len++) {
				uint64_t n = 0;

				setup_kind(&f, k, 16, 4096);
				start(&f, id);
				for (int j = 0; j < 100; j++)
					record(&f, payload, len);
				for (uint32_t r = 0; r < f.set.geo.n_rings; r++)
					n += walk(&f, r, len, count_id, &id);
				assert_int_equal(n, 100);
				teardown(&f);
			}
			/* The largest that fits, and one byte more. */
			setup_kind(&f, k, 2, 4096);
			len = ky_geometry_max_payload(&f.set.geo);
			record(&f, payload, len);
			assert_int_equal(lost(&f), 0);
			record(&f, payload, len + 1);
			record(&f, payload, SIZE_MAX / 2);
			assert_int_equal(lost(&f), 2);
			teardown(&f);
		}
	}
}

/*
 * A thread is about to record by the short way when its hook gets another id, for which that way
 * has no room.
 */
static void test_id_changes(void **state)
{
	static uint32_t ids[] = {31, 1000};
	uint8_t payload[PAYLOAD + KYMO_SCRATCH_SLACK] = {0};
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		for (size_t i = 0; is_usable_kind(k) && i < KY_ARRAY_SIZE(ids); i++) {
			kymo_flat_fn flat;
			uint64_t n = 0;

			setup_kind(&f, k, 2, 4096);
			flat = f.state.record_flat;
			start(&f, ids[i]);
			for (int j = 0; j < 10; j++)
				flat(&f.event, payload, &f.hook, PAYLOAD);
			for (uint32_t r = 0; r < f.set.geo.n_rings; r++)
				n += walk(&f, r, PAYLOAD, count_id, &ids[i]);
			assert_int_equal(n, 10);
			teardown(&f);
		}
	}
}

static void compare_bytes(void *arg, uint32_t id, const uint8_t *payload)
{
	const char *expected = arg;

	assert_memory_equal(payload, expected, strlen(expected) + 1);
}

static void test_pieces(void **state)
{
	char scratch[64] = "ab", text[200], expected[512];
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		for (uint32_t len = KYMO_PIECE_MIN; is_usable_kind(k) && len < 100; len++) {
			struct kymo_piece pieces[] = {
				{scratch, 2, KYMO_PIECE_SCRATCH},
				{text, len, KYMO_PIECE_TEXT},
				{text + 100, len, 0},
				{"z\0..............", 2, KYMO_PIECE_SCRATCH},
			};
			uint64_t n = 0;

			for (int i = 0; i < 200; i++)
				text[i] = (char)('A' + i % 26);
			snprintf(expected, sizeof(expected), "ab%.*s%.*sz", (int)len, text,
				(int)len, text + 100);
			text[len / 2] = 0;
			expected[2 + len / 2] = '#';
			setup_kind(&f, k, 2, 4096);
			f.state.record(&f.event, scratch, 2 * len + 4, pieces, 4);
			for (uint32_t r = 0; r < f.set.geo.n_rings; r++)
				n += walk(&f, r, 2 * len + 4, compare_bytes, expected);
			assert_int_equal(n, 1);
			teardown(&f);
		}
	}
}

/* The clock jumps: more than 27 bits ahead, and back before the last record. */
static void test_clock_steps(void **state)
{
	static const uint64_t steps[] = {1000, 1000 + (1u << 27) - 1, 1u << 28, (1ull << 40) + 5,
		(1ull << 40) + 6, 7, (1ull << 41)};
	struct payload p = {.writer = 0};
	struct tally t = {0};
	struct fixture f;
	uint64_t n = 0;
	int r;

	if (!is_usable_kind(1))
		skip();
	setup_kind(&f, 1, 2, 4096);
	for (size_t i = 0; i < KY_ARRAY_SIZE(steps); i++, p.seq++)
		do
			r = f.hook.write(&f.hook, &p, PAYLOAD, NULL, 0, steps[i]);
		while (r != KY_WRITE_DONE && r != KY_WRITE_LONG);
	for (uint32_t i = 0; i < f.set.geo.n_rings; i++)
		n += walk(&f, i, PAYLOAD, count_payload, &t);
	assert_int_equal(n, KY_ARRAY_SIZE(steps));
	teardown(&f);
}

static struct fixture *current;
static __thread uint32_t handler_writer;

static void on_signal(int sig)
{
	(void)sig;
	if (handler_writer)
		for (int i = 0; i < 3; i++)
			emit(current, handler_writer);
}

struct worker {
	pthread_t thread;
	struct fixture *f;
	uint32_t writer;
	uint64_t n;
	bool migrate;
};

static void *emit_events(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	handler_writer = w->writer + N_WRITERS / 2;
	for (uint64_t i = 0; i < w->n; i++) {
		emit(w->f, w->writer);
		if (w->migrate && i % 64 == 0) {
			CPU_ZERO(&set);
			CPU_SET((i / 64) % n_cpus(), &set);
			sched_setaffinity(0, sizeof(set), &set);
		}
	}
	handler_writer = 0;
	ky_thread_release(&w->f->set);
	return NULL;
}

static void run_threads(
	int kind, int n_threads, uint64_t n, bool signals, bool migrate, bool overwrite)
{
	struct itimerval off = {{0, 0}, {0, 0}}, on = {{0, 61}, {0, 61}};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct worker w[N_WRITERS / 2];
	struct fixture f;

	if (!is_usable_kind(kind) || !interruptible(kind))
		return;
	if (overwrite)
		setup_overwrite(&f, kind, 8, 4096);
	else
		setup_kind(&f, kind, 1024, 65536);
	current = &f;
	sigaction(SIGALRM, &sa, NULL);
	if (signals)
		setitimer(ITIMER_REAL, &on, NULL);
	for (int i = 0; i < n_threads; i++) {
		w[i] = (struct worker){.f = &f, .writer = (uint32_t)i, .n = n, .migrate = migrate};
		assert_int_equal(pthread_create(&w[i].thread, NULL, emit_events, &w[i]), 0);
	}
	for (int i = 0; i < n_threads; i++)
		pthread_join(w[i].thread, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	check_all(&f, false);
	teardown(&f);
}

static void test_threads(void **state)
{
	for (int k = 0; k < N_KINDS; k++) {
		run_threads(k, 1, 200000, false, false, false);
		run_threads(k, 16, 20000, false, false, false);
	}
}

static void test_signals(void **state)
{
	for (int k = 0; k < N_KINDS; k++)
		run_threads(k, 2, 300000, true, false, false);
}

static void test_migration(void **state)
{
	for (int k = 0; k < N_KINDS; k++)
		run_threads(k, 4, 60000, true, true, false);
}

static void test_overwrite_threads(void **state)
{
	for (int k = 0; k < N_KINDS; k++)
		run_threads(k, 4, 60000, true, true, true);
}

static void test_inactive(void **state)
{
	struct fixture f;

	for (int k = 0; k < N_KINDS; k++) {
		if (!is_usable_kind(k))
			continue;
		setup_kind(&f, k, 2, 4096);
		emit(&f, 0);
		ky_hook_switch(&f.hook, false);
		record(&f, "12345678901234567890123456789", PAYLOAD);
		check_all(&f, false);
		teardown(&f);
	}
}

/*
 * After fork and exec a thread is another thread: it does not use the ring that it would else find.
 */
static void test_identities(void **state)
{
	uint64_t owner[3];
	struct fixture f;

	setup(&f, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, 3, 2, 4096);
	for (uint32_t i = 0; i < 3; i++) {
		emit(&f, 0);
		emit(&f, 0);
		owner[i] = *ky_geometry_slot(&f.set.geo, f.set.base, i);
		assert_true(owner[i] >> 32);
		ky_thread_set_process();
	}
	assert_true(owner[0] >> 32 != owner[1] >> 32 && owner[1] >> 32 != owner[2] >> 32);
	assert_true((uint32_t)owner[0] != (uint32_t)owner[1]);
	check_all(&f, false);
	teardown(&f);
}

static struct fixture *moving, *elsewhere;

static void move_hook(void)
{
	ky_hook_switch(&moving->hook, false);
	ky_hook_init(&moving->hook, &elsewhere->set, EVENT + 1);
	ky_hook_switch(&moving->hook, true);
}

/*
 * The hook changes to another set while a thread records: a record ends in the set where it began.
 */
static void test_hook_moves(void **state)
{
	struct fixture from, to;
	struct tally t = {0};

	setup(&from, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, 2, 2, 8192);
	setup(&to, KY_SET_PER_THREAD, KY_CLOCK_MONOTONIC, 2, 4, 4096);
	moving = &from;
	elsewhere = &to;
	ky_thread_claimed = move_hook;
	emit(&from, 0);
	ky_thread_claimed = NULL;
	assert_true(from.hook.set == &to.set);
	assert_int_equal(walk(&from, 0, PAYLOAD, count_payload, &t), 1);
	assert_int_equal(walk(&to, 0, PAYLOAD, count_payload, &t), 0);
	assert_int_equal(lost(&from) + lost(&to), 0);
	teardown(&from);
	teardown(&to);
}

/* A fork has wiped the hook's memory after the hook was found active. */
static void test_wiped(void **state)
{
	struct payload p = {.writer = 0};
	struct ky_hook hook = {.active = 1};

	ky_record(&hook, &p, PAYLOAD, NULL, 0);
}

static sigjmp_buf after_fault;
static bool unwound;

static _Unwind_Reason_Code look_for_caller(struct _Unwind_Context *context, void *arg);

static void on_fault(int sig)
{
	(void)sig;
	_Unwind_Backtrace(look_for_caller, NULL);
	siglongjmp(after_fault, 1);
}

/* Records from an unmapped address, on a CPU whose ring is in use. */
static __attribute__((noinline)) void record_and_fault(struct fixture *f)
{
	for (;;) {
		emit(f, 0);
		f->hook.write(&f->hook, (void *)16, PAYLOAD, NULL, 0, 1);
	}
}

static _Unwind_Reason_Code look_for_caller(struct _Unwind_Context *context, void *arg)
{
	void *pc = (void *)(_Unwind_GetIP(context) - 1);

	(void)arg;
	unwound |= _Unwind_FindEnclosingFunction(pc) == (void *)record_and_fault;
	return _URC_NO_REASON;
}

static void unwind_from_writer(int kind)
{
	struct fixture f;

	setup_kind(&f, kind, 2, 4096);
	unwound = false;
	if (!sigsetjmp(after_fault, 1))
		record_and_fault(&f);
	assert_true(unwound);
	teardown(&f);
}

/* A debugger or profiler that stops a thread within a writer can unwind to the caller. */
static void test_unwind(void **state)
{
	struct sigaction sa = {.sa_handler = on_fault}, old;

	sigaction(SIGSEGV, &sa, &old);
	for (int k = 0; k < N_KINDS; k++)
		if (is_usable_kind(k) && kinds[k].mode == KY_SET_PER_CPU)
			unwind_from_writer(k);
	sigaction(SIGSEGV, &old, NULL);
}

/* A word that another process could overwrite: of a control block, or of the rings' owners. */
static uint64_t *any_word(struct fixture *f)
{
	struct ky_geometry *g = &f->set.geo;
	uint32_t i = (uint32_t)rand() % g->n_rings;

	if (g->mode == KY_SET_PER_THREAD && rand() % 100 == 0)
		return ky_geometry_slot(g, f->set.base, i);
	if (g->mode == KY_SET_PER_THREAD && rand() % 100 == 0)
		return (uint64_t *)((char *)f->set.base + KY_SET_SLOTS) + rand() % 3;
	return (uint64_t *)ky_geometry_ctl(g, f->set.base, i) + rand() % 16;
}

/* The writer stays within the set, with any content that a hostile process writes there. */
static void test_hostile_memory(void **state)
{
	struct fixture f;

	srand(1);
	for (int k = 0; k < N_KINDS; k++) {
		if (!is_usable_kind(k))
			continue;
		setup_kind(&f, k, 2, 4096);
		for (int i = 0; i < 100000; i++) {
			*any_word(&f) = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^
					(uint64_t)rand();
			if (rand() % 100 == 0)
				ky_thread_release(&f.set);
			emit(&f, 0);
		}
		teardown(&f);
	}
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAP_FLAG 0x100
#define STEPS_MAX 1000000ul
#define N_SLOTS	  256

static struct {
	uint64_t *words[N_SLOTS + 2];
	uint64_t strides[N_SLOTS + 2], moduli[N_SLOTS + 2];
	size_t n;
	unsigned long n_steps;
	bool over;
} scribbler;

static void scribble(int signo, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uint64_t step = ++scribbler.n_steps;

	(void)signo;
	(void)info;
	for (size_t i = 0; i < scribbler.n; i++)
		*scribbler.words[i] = step % scribbler.moduli[i] * scribbler.strides[i];
	if (scribbler.over || step > STEPS_MAX)
		u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void scribble_at(uint64_t *word, uint64_t stride, uint64_t modulus)
{
	size_t i = scribbler.n++;

	scribbler.words[i] = word;
	scribbler.strides[i] = stride;
	scribbler.moduli[i] = modulus;
}

/* Records while the words change after each instruction. */
static void record_meanwhile(struct fixture *f)
{
	scribbler.n_steps = 0;
	scribbler.over = false;
	__asm__ volatile("pushf; orq %0, (%%rsp); popf" : : "i"(TRAP_FLAG) : "memory", "cc");
	emit(f, 0);
	scribbler.over = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	assert_in_range(scribbler.n_steps, 1, STEPS_MAX);
	scribbler.n = 0;
}

/*
 * Another program writes into a thread's ring, or the words of slots, at any moment, all the time:
 * the event is recorded or counted all the same, after a limited number of instructions.
 */
static void test_scribbled_meanwhile(void **state)
{
	struct sigaction act = {.sa_sigaction = scribble, .sa_flags = SA_SIGINFO}, old;
	struct ky_set_slots *shared;
	struct ky_ring_ctl *ctl;
	struct fixture f;

	(void)state;
	sigaction(SIGTRAP, &act, &old);
	for (int overwrite = 0; overwrite < 2; overwrite++) {
		setup(&f, KY_SET_PER_THREAD, KY_CLOCK_TSC, N_SLOTS, 2, 4096);
		f.set.geo.overwrite = overwrite;
		shared = ky_slots_shared(f.set.base);
		scribble_at(&shared->n_claimed, 1, N_SLOTS - 5);
		record_meanwhile(&f);
		shared->n_claimed = 3;
		scribble_at(&shared->n_released, 1, STEPS_MAX);
		for (uint32_t i = 0; i < N_SLOTS; i++)
			scribble_at(ky_geometry_slot(&f.set.geo, f.set.base, i), 4, STEPS_MAX);
		record_meanwhile(&f);
		assert_int_equal(lost(&f), 2);
		memset(ky_geometry_slot(&f.set.geo, f.set.base, 0), 0, N_SLOTS * sizeof(uint64_t));
		shared->n_claimed = 0;
		emit(&f, 0);
		ctl = ky_geometry_ctl(&f.set.geo, f.set.base, 0);
		assert_int_equal(ctl->head >> 32, 1);
		scribble_at(&ctl->reserve, UINT64_C(1) << 33, STEPS_MAX);
		record_meanwhile(&f);
		assert_int_equal(ctl->lost[KY_LOST_STUCK], 1);
		scribble_at(&ctl->head, UINT64_C(1) << 33, STEPS_MAX);
		record_meanwhile(&f);
		ctl->reserve = ctl->head;
		scribble_at(&ctl->last_ts, 1, STEPS_MAX);
		scribble_at(&ctl->nested_ts, 1, STEPS_MAX);
		scribble_at(&ctl->oldest, 1, STEPS_MAX);
		scribble_at(ky_geometry_oldest(&f.set.geo, f.set.base, 0), 1, STEPS_MAX);
		record_meanwhile(&f);
		teardown(&f);
	}
	sigaction(SIGTRAP, &old, NULL);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_full_then_free),
		cmocka_unit_test(test_full_elsewhere),
		cmocka_unit_test(test_overwrite),
		cmocka_unit_test(test_beyond_32_bits),
		cmocka_unit_test(test_handler_laps),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_wait_in_handler),
		cmocka_unit_test(test_ids_and_sizes),
		cmocka_unit_test(test_id_changes),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_clock_steps),
		cmocka_unit_test(test_inactive),
		cmocka_unit_test(test_identities),
		cmocka_unit_test(test_hook_moves),
		cmocka_unit_test(test_wiped),
		cmocka_unit_test(test_unwind),
		cmocka_unit_test(test_hostile_memory),
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(test_scribbled_meanwhile),
#endif
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_migration),
		cmocka_unit_test(test_overwrite_threads),
	};

	init_rseq();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
