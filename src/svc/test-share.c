/* SPDX-License-Identifier: MIT */
#include "svc/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <time.h>
#include <cmocka.h>

#define N_JOBS 20

static struct ky_loop loop;
static struct ky_shares shares;
static struct ky_share busy, calm;

static struct work {
	struct ky_job job;
	struct ky_share *share;
	uint64_t turn; /* in which it ran; 0: it has not */
	int order;
} works[N_JOBS], light;
static int n_run;

/* CPU time passes as the test says: a virtual machine that stands still makes no difference. */
static uint64_t cpu_ns;

int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (clock != CLOCK_THREAD_CPUTIME_ID)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){(time_t)(cpu_ns / 1000000000), (long)(cpu_ns % 1000000000)};
	return 0;
}

/* Whether the kernel takes the CPU from this thread again and again, and how often it did. */
static bool is_preempted;
static long n_preempted;
static int n_rests;

int __wrap_getrusage(int who, struct rusage *usage);

int __wrap_getrusage(int who, struct rusage *usage)
{
	n_preempted += is_preempted;
	*usage = (struct rusage){.ru_nivcsw = n_preempted};
	return 0;
}

static void count_rests(struct ky_loop *l)
{
	n_rests += ky_timer_is_set(&shares.rest);
}

static void run_half_slice(struct ky_job *j)
{
	struct work *w = ky_container_of(j, struct work, job);

	cpu_ns += KY_SHARE_SLICE_NS / 2;
	w->turn = loop.n_turns;
	w->order = n_run++;
	if (n_run == N_JOBS)
		ky_loop_stop(&loop);
}

static void run_light(struct ky_job *j)
{
	light.turn = loop.n_turns;
	light.order = n_run;
}

static int setup(void **state)
{
	memset(works, 0, sizeof(works));
	memset(&light, 0, sizeof(light));
	n_run = 0;
	if (ky_loop_init(&loop) < 0)
		return -1;
	ky_shares_init(&shares, &loop);
	ky_share_init(&busy, &shares);
	ky_share_init(&calm, &shares);
	for (int i = 0; i < N_JOBS; i++) {
		ky_job_init(&works[i].job, run_half_slice);
		ky_share_add(&busy, &loop, &works[i].job);
	}
	ky_job_init(&light.job, run_light);
	return 0;
}

static int teardown(void **state)
{
	ky_share_deinit(&busy);
	ky_share_deinit(&calm);
	ky_job_cancel(&shares.work);
	ky_timer_cancel(&shares.rest);
	ky_loop_deinit(&loop);
	return 0;
}

/* Work of one share takes a slice of each turn, and the rest of it waits for other turns. */
static void test_slice_of_each_turn(void **state)
{
	int in_turn = 0;

	assert_int_equal(ky_loop_run(&loop), 0);
	for (int i = 0; i < N_JOBS; i++) {
		assert_int_equal(works[i].order, i);
		in_turn = i && works[i].turn == works[i - 1].turn ? in_turn + 1 : 1;
		assert_true(in_turn <= 2);
	}
}

static void add_light(struct ky_timer *t)
{
	ky_share_add(&calm, &loop, &light.job);
}

/* One that has had little time is served before those who wait already. */
static void test_least_time_first(void **state)
{
	struct ky_timer timer;

	ky_timer_init(&timer, add_light);
	ky_timer_set(&loop, &timer, 0);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_true(light.turn > 0);
	assert_true(light.order <= 4);
}

/* Two shares get the same time, whatever they have waiting. */
static void test_equal_time(void **state)
{
	for (int i = N_JOBS / 2; i < N_JOBS; i += 2)
		ky_share_add(&calm, &loop, &works[i].job);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_true(works[N_JOBS - 2].order <= N_JOBS / 2 + 2);
}

static void add_to_both(struct ky_job *j)
{
	for (int i = N_JOBS / 2; i < N_JOBS; i++)
		ky_share_add(i % 2 ? &busy : &calm, &loop, &works[i].job);
}

/* One that had no work until now gets no more than the other from then on. */
static void test_time_without_work(void **state)
{
	struct ky_job later;

	for (int i = N_JOBS / 2; i < N_JOBS; i++)
		ky_job_cancel(&works[i].job);
	ky_job_init(&later, add_to_both);
	ky_share_add(&busy, &loop, &later);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_true(works[N_JOBS / 2 + 1].order <= N_JOBS / 2 + 1);
}

static void test_jobs_that_are_cancelled(void **state)
{
	for (int i = 0; i < N_JOBS - 1; i++)
		ky_job_cancel(&works[i].job);
	n_run = N_JOBS - 1;
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(works[N_JOBS - 1].turn, 1);
}

static int rests_in_run(bool rests, bool preempted)
{
	shares.rests = rests;
	is_preempted = preempted;
	n_preempted = n_rests = 0;
	loop.on_turn = count_rests;
	assert_int_equal(ky_loop_run(&loop), 0);
	return n_rests;
}

/* Shares that rest do so after each slice while other processes want the CPU. */
static void test_rests(void **state)
{
	assert_true(rests_in_run(true, true) >= N_JOBS / 2 - 1);
}

static void test_does_not_rest_alone(void **state)
{
	assert_int_equal(rests_in_run(true, false), 0);
}

static void test_does_not_rest_unasked(void **state)
{
	assert_int_equal(rests_in_run(false, true), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_slice_of_each_turn),
		TEST(test_least_time_first),
		TEST(test_equal_time),
		TEST(test_time_without_work),
		TEST(test_jobs_that_are_cancelled),
		TEST(test_rests),
		TEST(test_does_not_rest_alone),
		TEST(test_does_not_rest_unasked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
