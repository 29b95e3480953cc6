/* SPDX-License-Identifier: MIT */
/* The limit of a user's memory, on a session that has neither a process nor a socket. */
#include "sessiond/model/contents.h"
#include "sessiond/model/quota.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "sessiond/model/test-clock.h"

#define OWNER 1000
#define MAX   (UINT64_C(1) << 30)

static struct env env;
static struct session s;
static struct channel *channel;
static unsigned n_looks;

uint64_t __real_ring_memory_in_use(const struct ring_memory *m);
uint64_t __wrap_ring_memory_in_use(const struct ring_memory *m);

uint64_t __wrap_ring_memory_in_use(const struct ring_memory *m)
{
	n_looks++;
	return __real_ring_memory_in_use(m);
}

static void stop_loop(struct ky_timer *t)
{
	(void)t;
	ky_loop_stop(&env.loop);
}

static void run_for(uint64_t ns)
{
	struct ky_timer end;

	ky_timer_init(&end, stop_loop);
	ky_timer_set(&env.loop, &end, ns);
	env.loop.stopped = false;
	assert_int_equal(ky_loop_run(&env.loop), 0);
}

static struct ring_set *withdrawn;
static unsigned n_withdrawn, n_freed;

static void set_withdrawn(struct ring_set *set)
{
	withdrawn = set;
	n_withdrawn++;
}

static void memory_freed(struct channel *c)
{
	assert_ptr_equal(c, channel);
	n_freed++;
}

static struct observer observer = {.set_withdrawn = set_withdrawn, .memory_freed = memory_freed};

static int setup(void **state)
{
	const struct session_spec spec = {.name = "s", .output = "", .shm_path = ""};

	(void)state;
	env_init(&env);
	assert_int_equal(ky_loop_init(&env.loop), 0);
	env.loop.clock = &test_clock;
	env.n_cpus = 2;
	env.clock = KY_CLOCK_MONOTONIC;
	now_ns = UINT64_C(1) << 40;
	quota_init(&env, MAX);
	ky_list_append(&env.observers, &observer.node);
	withdrawn = NULL;
	n_withdrawn = n_freed = 0;
	assert_int_equal(session_init(&s, &env, &spec), 0);
	channel = channel_new(&s, "c");
	channel_add(channel);
	channel->subbuf_size = 4096;
	channel->num_subbuf = 2;
	channel->burst_size = 0;
	ky_list_append(&env.sessions, &s.node);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	session_clear(&s);
	ky_list_remove(&s.node);
	session_deinit(&s);
	ky_timer_cancel(&env.quota_look);
	ky_job_cancel(&env.quota_job);
	ky_loop_deinit(&env.loop);
	ky_list_remove(&env.observers);
	return 0;
}

/* Returns what the user may still have. */
static uint64_t left(void)
{
	uint64_t low = 0, high = MAX;

	while (low < high) {
		uint64_t mid = (low + high + 1) / 2;

		if (quota_allows(&env, OWNER, mid))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

static struct ring_set *make_set(struct ring_set *kind, pid_t pid)
{
	struct ring_set *set = ring_set_of_process(kind, pid, (uint32_t)pid, 1);

	assert_int_equal(ring_set_make(set), 0);
	return set;
}

/* However many programs have buffers, the next one's take as few system calls. */
static void test_many_programs(void **state)
{
	struct ring_set *kind = ring_set_get(channel, OWNER, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	struct ring_set *sets[100];
	uint64_t before, size;

	(void)state;
	channel->buffers = BUFFERS_AUTO;
	sets[0] = make_set(kind, 1);
	n_looks = 0;
	before = left();
	for (int i = 1; i < 100; i++)
		sets[i] = make_set(kind, 1 + i);
	assert_in_range(n_looks, 99, 2 * 99);
	size = sets[1]->charged;
	assert_int_equal(before - left(), 99 * size);
	for (int i = 1; i < 100; i++)
		ring_set_free(sets[i]);
	assert_int_equal(left(), before);
}

/* Memory that programs take later counts a second later at the latest. */
static void test_growth(void **state)
{
	struct ring_set *set = ring_set_get(channel, OWNER, 64, KY_SET_PER_THREAD, ROOM_TO_GROW);
	uint64_t before, taken, size;

	(void)state;
	channel->buffers = BUFFERS_THREAD;
	assert_int_equal(ring_set_make(set), 0);
	before = left();
	size = set->charged;
	taken = 2 * size;
	assert_int_equal(
		fallocate(set->memory.rings_fd, 0, (off_t)set->geometry.data_offset, (off_t)taken),
		0);
	now_ns += 1000 * KY_NS_PER_MS;
	assert_true(before - left() >= taken - size);
	ring_set_free(set);
	assert_true(left() >= before + size);
}

/* Buffers of CPUs are charged as a whole; a user may have exactly what the limit says. */
static void test_limit(void **state)
{
	struct ring_set *kind = ring_set_get(channel, OWNER, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	struct ring_set *set;

	(void)state;
	channel->buffers = BUFFERS_PROCESS;
	assert_int_equal(left(), MAX);
	set = make_set(kind, 1);
	assert_int_equal(set->charged, set->geometry.data_offset + 2 * 2 * 4096);
	assert_int_equal(set->registry->set_bytes, set->charged);
	assert_int_equal(MAX - left(), set->registry->log_size + set->charged);
	ring_set_free(set);
}

/* Sets that the limit has refused are tried again when memory is free; other users do not wait. */
static void test_waiting(void **state)
{
	struct ring_set *kind = ring_set_get(channel, OWNER, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	struct ring_set *others = ring_set_get(
		channel, OWNER + 1, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	struct ring_set *first, *second, *other;

	(void)state;
	channel->buffers = BUFFERS_PROCESS;
	first = make_set(kind, 1);
	env.user_memory_max = MAX - left() + first->charged - 1;
	second = ring_set_of_process(kind, 2, 2, 1);
	assert_int_equal(ring_set_make(second), -EUSERS);
	assert_int_equal(second->state, SET_WAITING);
	other = make_set(others, 3);
	run_for(KY_NS_PER_MS);
	assert_int_equal(second->state, SET_WAITING);
	ring_set_free(first);
	run_for(KY_NS_PER_MS);
	assert_int_equal(n_freed, 1);
	assert_int_equal(second->state, SET_KNOWN);
	assert_int_equal(other->state, SET_MADE);
	assert_int_equal(ring_set_make(second), 0);
	ring_set_free(other);
	run_for(KY_NS_PER_MS);
	assert_int_equal(n_freed, 1); /* nothing has waited */
	ring_set_free(second);
}

/* A made set of threads' buffers, of which programs have taken so many bytes. */
static struct ring_set *make_grown(uid_t uid, uint32_t abi_bits, uint64_t bytes)
{
	struct ring_set *set = ring_set_get(
		channel, uid, abi_bits, KY_SET_PER_THREAD, ROOM_TO_GROW);

	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(
		fallocate(set->memory.rings_fd, 0, (off_t)set->geometry.data_offset, (off_t)bytes),
		0);
	return set;
}

/* A user beyond the limit loses the set that has grown most, and nobody else loses any. */
static void test_too_much(void **state)
{
	struct ring_set *modest, *more, *most, *last;
	uint64_t unit;

	(void)state;
	channel->buffers = BUFFERS_THREAD;
	channel->pool_size = 1;
	modest = ring_set_get(channel, OWNER, 64, KY_SET_PER_THREAD, ROOM_TO_GROW);
	assert_int_equal(ring_set_make(modest), 0);
	unit = 4 * modest->charged;
	most = make_grown(OWNER + 1, 32, 3 * unit);
	more = make_grown(OWNER + 1, 64, 2 * unit);
	last = make_grown(OWNER + 2, 64, 3 * unit);
	env.user_memory_max = 4 * unit;
	run_for(1000 * KY_NS_PER_MS - 1);
	assert_int_equal(n_withdrawn, 0);
	run_for(2000 * KY_NS_PER_MS);
	assert_int_equal(n_withdrawn, 1);
	assert_ptr_equal(withdrawn, most);
	assert_int_equal(more->state, SET_MADE);
	assert_int_equal(last->state, SET_MADE);
}

/* Rings of CPUs may grow to an eighth of half of what their user may still have. */
static void test_growing_rings(void **state)
{
	struct ring_set *kind = ring_set_get(channel, OWNER, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	struct ring_set *set;

	(void)state;
	channel->buffers = BUFFERS_PROCESS;
	channel->burst_size = MAX;
	env.user_memory_max = 16 * 4096 * UINT64_C(64);
	set = make_set(kind, 1);
	assert_in_range(set->geometry.n_rings * (uint64_t)set->geometry.n_blocks * 4096,
		env.user_memory_max / 64, env.user_memory_max / 16);
	ring_set_free(set);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_many_programs),
		TEST(test_growth),
		TEST(test_limit),
		TEST(test_waiting),
		TEST(test_too_much),
		TEST(test_growing_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
