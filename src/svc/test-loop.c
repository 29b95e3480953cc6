/* SPDX-License-Identifier: MIT */
#include "svc/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct ky_loop loop;
static char order[16];

static void note(char c)
{
	size_t n = strlen(order);

	assert_true(n + 1 < sizeof(order));
	order[n] = c;
}

static int setup(void **state)
{
	memset(order, 0, sizeof(order));
	return ky_loop_init(&loop);
}

static int teardown(void **state)
{
	ky_loop_deinit(&loop);
	return 0;
}

static void timer_a(struct ky_timer *t)
{
	note('a');
}

static void timer_b(struct ky_timer *t)
{
	note('b');
}

static void timer_stop(struct ky_timer *t)
{
	note('s');
	ky_loop_stop(&loop);
}

static void test_timers(void **state)
{
	struct ky_timer a, b, cancelled, stop;
	uint64_t begin = ky_loop_now_ns();

	ky_timer_init(&a, timer_a);
	ky_timer_init(&b, timer_b);
	ky_timer_init(&cancelled, timer_a);
	ky_timer_init(&stop, timer_stop);
	/* each later than the one before it, also if this process gets no CPU between two calls */
	ky_timer_set(&loop, &cancelled, KY_NS_PER_MS);
	ky_timer_set(&loop, &b, 1000 * KY_NS_PER_MS);
	ky_timer_set(&loop, &b, 2 * KY_NS_PER_MS); /* moved */
	ky_timer_set(&loop, &a, 4 * KY_NS_PER_MS);
	ky_timer_set(&loop, &stop, 6 * KY_NS_PER_MS);
	ky_timer_cancel(&cancelled);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "bas");
	assert_true(ky_loop_now_ns() - begin >= 6 * KY_NS_PER_MS);
}

static uint64_t played_ns;

static uint64_t look_at_clock(struct ky_loop_clock *c)
{
	return played_ns;
}

static void pass_time(struct ky_loop_clock *c, uint64_t ns)
{
	played_ns += ns;
}

/* The loop does not sleep: it moves the clock to each timer, which takes one turn. */
static void test_played_clock(void **state)
{
	struct ky_loop_clock clock = {look_at_clock, pass_time};
	struct ky_timer a, b, stop;

	loop.clock = &clock;
	ky_timer_init(&a, timer_a);
	ky_timer_init(&b, timer_b);
	ky_timer_init(&stop, timer_stop);
	ky_timer_set(&loop, &stop, 3600 * 1000 * KY_NS_PER_MS);
	ky_timer_set(&loop, &a, 2 * KY_NS_PER_MS);
	ky_timer_set(&loop, &b, KY_NS_PER_MS);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "bas");
	assert_int_equal(played_ns, 3600 * 1000 * KY_NS_PER_MS);
	assert_int_equal(loop.n_turns, 3);
}

static struct ky_timer limit;
static int reply[2];

static void delay_us(struct ky_watch *w, uint32_t events)
{
	ky_watch_remove(w);
	played_ns += 100 * KY_NS_PER_MS;
	assert_int_equal(write(reply[1], "x", 1), 1);
}

static void reply_came(struct ky_watch *w, uint32_t events)
{
	note('r');
	ky_timer_cancel(&limit);
	ky_loop_stop(&loop);
}

/* A reply that arrives while the loop is busy, or has no CPU, is not too late. */
static void test_limit_while_busy(void **state)
{
	struct ky_loop_clock clock = {look_at_clock, pass_time};
	struct ky_watch busy, replies;
	int fds[2];

	loop.clock = &clock;
	assert_int_equal(pipe(fds) | pipe(reply), 0);
	assert_int_equal(ky_watch_add(&loop, &busy, fds[1], EPOLLOUT, delay_us), 0);
	assert_int_equal(ky_watch_add(&loop, &replies, reply[0], EPOLLIN, reply_came), 0);
	ky_timer_init(&limit, timer_stop);
	ky_timer_set(&loop, &limit, 50 * KY_NS_PER_MS);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "r");
	ky_watch_remove(&replies);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(reply[i]);
	}
}

struct end {
	int fds[2];
	struct ky_watch watch;
	struct end *other;
};

/* Whichever comes first frees the other, whose event has been fetched already. */
static void end_ready(struct ky_watch *w, uint32_t events)
{
	struct end *e = ky_container_of(w, struct end, watch), *other = e->other;

	note('r');
	ky_watch_remove(&other->watch);
	memset(other, 0xff, sizeof(*other));
	ky_watch_remove(w);
	ky_loop_stop(&loop);
}

static void test_removed_watch_is_not_called(void **state)
{
	struct end ends[2];
	int fds[2][2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe(fds[i]), 0);
		ends[i].other = &ends[!i];
		assert_int_equal(
			ky_watch_add(&loop, &ends[i].watch, fds[i][0], EPOLLIN, end_ready), 0);
		assert_int_equal(write(fds[i][1], "x", 1), 1);
	}
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "r");
	for (int i = 0; i < 2; i++) {
		close(fds[i][0]);
		close(fds[i][1]);
	}
}

static void job_free(struct ky_job *j)
{
	note('j');
	free(j);
	ky_loop_stop(&loop);
}

static void test_jobs_may_free_themselves(void **state)
{
	struct ky_job *first = malloc(sizeof(*first)), *second = malloc(sizeof(*second));

	ky_job_init(first, job_free);
	ky_job_init(second, job_free);
	ky_job_add(&loop, first);
	ky_job_add(&loop, first);
	ky_job_add(&loop, second);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "jj");
}

static void got_signal(struct ky_loop *l, int signo)
{
	assert_int_equal(signo, SIGUSR2);
	note('2');
	ky_loop_stop(l);
}

static void test_signals(void **state)
{
	sigset_t set, none;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(ky_loop_signals(&loop, &set, got_signal), 0);
	kill(getpid(), SIGUSR2);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(order, "2");
	sigprocmask(SIG_SETMASK, &none, NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_timers),
		TEST(test_played_clock),
		TEST(test_limit_while_busy),
		TEST(test_removed_watch_is_not_called),
		TEST(test_jobs_may_free_themselves),
		TEST(test_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
