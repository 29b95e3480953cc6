/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sessiond/barrier.h"

#define TIMEOUT_NS (1000 * KY_NS_PER_MS)

static struct ky_loop loop;
static struct barrier barrier;
static struct ky_list peer = KY_LIST_INIT(peer);
static unsigned n_done;

static void done(struct barrier *b)
{
	n_done++;
	ky_loop_stop(&loop);
}

/* A barrier that waits for n answers. */
static void arm(unsigned n, uint64_t timeout_ns)
{
	assert_int_equal(ky_loop_init(&loop), 0);
	n_done = 0;
	barrier_init(&barrier, &loop, done);
	for (unsigned i = 0; i < n; i++)
		assert_non_null(ticket_new(&peer, TICKET_ACK, i, &barrier));
	barrier_arm(&barrier, timeout_ns);
}

static void run(bool timed_out)
{
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_done, 1);
	assert_int_equal(barrier.timed_out, timed_out);
	ticket_done_all(&peer);
	ky_loop_deinit(&loop);
}

static void test_nobody_to_wait_for(void **state)
{
	arm(0, TIMEOUT_NS);
	run(false);
}

static void test_all_answer(void **state)
{
	arm(2, TIMEOUT_NS);
	ticket_done(ticket_find(&peer, TICKET_ACK, 1));
	ticket_done(ticket_find(&peer, TICKET_ACK, 0));
	run(false);
}

static void test_peer_goes(void **state)
{
	arm(2, TIMEOUT_NS);
	ticket_done_all(&peer);
	run(false);
}

static void test_silence(void **state)
{
	arm(1, KY_NS_PER_MS);
	run(true);
}

/* Each answer gives the others the same time again, but not for ever. */
static void test_answers_buy_time(void **state)
{
	uint64_t first;

	arm(4, TIMEOUT_NS);
	first = barrier.timer.due_ns;
	ticket_done(ticket_find(&peer, TICKET_ACK, 0));
	assert_true(barrier.timer.due_ns > first);
	barrier.deadline_ns = ky_loop_now_ns() + KY_NS_PER_MS;
	ticket_done(ticket_find(&peer, TICKET_ACK, 1));
	assert_true(barrier.timer.due_ns < first);
	run(true);
	assert_int_equal(n_done, 1);
}

/* One that is trusted to be at work is waited for to the end. */
static void test_patience(void **state)
{
	arm(2, KY_NS_PER_MS);
	ticket_find(&peer, TICKET_ACK, 1)->patient = true;
	run(true);
	assert_true(ky_loop_now_ns() >= barrier.deadline_ns);
}

/* A program that is stopped cannot answer; one that only sleeps may. */
static void test_stopped_peer(void **state)
{
	pid_t child = fork();
	int status;

	if (!child)
		for (;;)
			raise(SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run(true);
	assert_true(ky_loop_now_ns() < barrier.give_up_ns);
	arm(1, 20 * KY_NS_PER_MS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = getpid();
	run(true);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
}

/* One whose listener would run if it could is waited for, but not for ever. */
static void test_starved_peer(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_NAME, "kymo-listener");
		for (;;)
			;
	}
	arm(1, 20 * KY_NS_PER_MS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run(true);
	assert_true(ky_loop_now_ns() >= barrier.deadline_ns);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_to_wait_for),
		cmocka_unit_test(test_all_answer),
		cmocka_unit_test(test_peer_goes),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_answers_buy_time),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_stopped_peer),
		cmocka_unit_test(test_starved_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
