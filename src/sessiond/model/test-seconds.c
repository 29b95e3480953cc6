/* SPDX-License-Identifier: MIT */
/*
 * Rings that are to hold events of so many seconds. Their clock is the machine's: they were filled
 * since it started, and the session requests a multiple of this time.
 */
#include "sessiond/model/seconds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "sessiond/model/channel.h"
#include "sessiond/model/contents.h"
#include "sessiond/model/session.h"
#include "sessiond/model/test-clock.h"

#define BLOCK 4096u
#define HOME  4u
#define MOST  64u

static struct env env;
static struct session s;
static struct channel *channel;
static struct ring_set *set;
static void *base;

static int setup(void **state)
{
	const struct session_spec spec = {.name = "s", .output = "", .shm_path = "", .seconds = 1};

	(void)state;
	env_init(&env);
	assert_int_equal(ky_loop_init(&env.loop), 0);
	env.loop.clock = &test_clock;
	env.n_cpus = 2;
	env.clock = KY_CLOCK_MONOTONIC;
	now_ns = 1000 * UINT64_C(1000000000);
	seconds_init(&env);
	assert_int_equal(session_init(&s, &env, &spec), 0);
	ky_list_append(&env.sessions, &s.node);
	s.state = SESSION_STARTED;
	channel = channel_new(&s, "c");
	channel_add(channel);
	channel->overwrite = true;
	channel->subbuf_size = BLOCK;
	channel->num_subbuf = HOME;
	channel->burst_size = MOST * BLOCK;
	set = ring_set_get(channel, 1000, 64, KY_SET_PER_CPU, ROOM_TO_GROW);
	assert_int_equal(ring_set_make(set), 0);
	assert_int_equal(set->geometry.n_blocks, MOST);
	base = mmap(NULL, set->geometry.data_offset, PROT_READ | PROT_WRITE, MAP_SHARED,
		set->memory.rings_fd, 0);
	assert_true(base != MAP_FAILED);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	munmap(base, set->geometry.data_offset);
	session_clear(&s);
	ky_list_remove(&s.node);
	session_deinit(&s);
	ky_timer_cancel(&env.seconds_timer);
	ky_loop_deinit(&env.loop);
	ky_list_remove(&env.observers);
	return 0;
}

static uint64_t n_used(uint32_t ring)
{
	return ky_geometry_ctl(&set->geometry, base, ring)->n_used;
}

/* Requests events of so many tenths of the time since the machine started. */
static void request_tenths(uint64_t tenths)
{
	s.clock.freq = ky_clock_read(s.clock.clock) / 10 * tenths;
}

/* Since the machine started, writers have entered blocks 1 to n of the ring. */
static void fill(uint32_t ring, uint64_t n)
{
	const struct ky_geometry *g = &set->geometry;

	for (uint64_t i = 1; i <= n; i++)
		ky_geometry_entry(g, base, ring, i * BLOCK)->number = i;
	ky_geometry_entry(g, base, ring, BLOCK)->begin_ts = 1;
	ky_geometry_ctl(g, base, ring)->head = ky_head(n * BLOCK + 1, n);
}

static void stop_loop(struct ky_timer *t)
{
	(void)t;
	ky_loop_stop(&env.loop);
}

/* Until the rings have been looked at once more. */
static void run_for_a_second(void)
{
	struct ky_timer end;

	ky_timer_init(&end, stop_loop);
	ky_timer_set(&env.loop, &end, 1000 * KY_NS_PER_MS);
	env.loop.stopped = false;
	assert_int_equal(ky_loop_run(&env.loop), 0);
}

/* A ring that would hold less than its seconds gets twice the blocks, up to all, and no other. */
static void test_growth(void **state)
{
	(void)state;
	fill(0, 3);
	request_tenths(6); /* two blocks, and two more */
	run_for_a_second();
	assert_true(n_used(0) <= HOME);
	request_tenths(100); /* 30 blocks, and two more */
	for (uint64_t wanted = 2 * HOME; wanted <= 32; wanted *= 2) {
		run_for_a_second();
		assert_int_equal(n_used(0), wanted);
	}
	run_for_a_second();
	assert_int_equal(n_used(0), 32);
	assert_true(n_used(1) <= HOME);
	fill(0, 20);
	for (int i = 0; i < 2; i++) {
		run_for_a_second();
		assert_int_equal(n_used(0), MOST);
	}
}

/* Rings do not grow while nothing is recorded, nor if no writer was there. */
static void test_rest(void **state)
{
	(void)state;
	request_tenths(100);
	run_for_a_second();
	assert_true(n_used(0) <= HOME);
	fill(0, 20);
	s.state = SESSION_STOPPED;
	run_for_a_second();
	assert_true(n_used(0) <= HOME);
	s.state = SESSION_STARTED;
	fill(0, 20);
	run_for_a_second();
	assert_int_equal(n_used(0), 2 * HOME);
}

/* An application may write anything there. */
static void test_hostile(void **state)
{
	const struct ky_geometry *g = &set->geometry;

	(void)state;
	request_tenths(100);
	fill(0, 3);
	ky_geometry_entry(g, base, 0, BLOCK)->begin_ts = UINT64_MAX;
	ky_geometry_entry(g, base, 0, 3 * (uint64_t)BLOCK)->number = UINT64_MAX;
	ky_geometry_ctl(g, base, 0)->n_used = MOST - 1;
	ky_geometry_ctl(g, base, 1)->n_used = UINT64_MAX;
	run_for_a_second();
	assert_int_equal(n_used(0), MOST);
	assert_true(n_used(1) == UINT64_MAX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_growth),
		TEST(test_rest),
		TEST(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
