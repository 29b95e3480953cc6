/* SPDX-License-Identifier: MIT */
/* The limit of a user's memory, on a session that has neither a process nor a socket. */
#include "sessiond/model/contents.h"
#include "sessiond/model/quota.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define OWNER 1000
#define MAX   (UINT64_C(1) << 30)

static struct env env;
static struct session s;
static struct channel *channel;
static uint64_t now_ns;
static unsigned n_looks;

uint64_t __real_ring_memory_in_use(const struct ring_memory *m);
uint64_t __wrap_ring_memory_in_use(const struct ring_memory *m);

uint64_t __wrap_ring_memory_in_use(const struct ring_memory *m)
{
	n_looks++;
	return __real_ring_memory_in_use(m);
}

static uint64_t read_clock(struct ky_loop_clock *c)
{
	(void)c;
	return now_ns;
}

static struct ky_loop_clock test_clock = {.now_ns = read_clock};

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_many_programs),
		TEST(test_growth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
