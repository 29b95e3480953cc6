/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sessiond/peers/barrier.h"

#define TIMEOUT_NS (1000 * KY_NS_PER_MS)

/* The loop's clock: it moves when the loop would sleep, and by `step_ns` whenever somebody looks at it. */
static uint64_t now_ns, step_ns;

static uint64_t look_at_clock(struct ky_loop_clock *c)
{
	return now_ns += step_ns;
}

static void pass_time(struct ky_loop_clock *c, uint64_t ns)
{
	assert_true(ns < UINT64_MAX); /* else the barrier would never complete */
	now_ns += ns;
}

static struct ky_loop_clock loop_clock = {look_at_clock, pass_time};
static struct ky_loop loop;
static struct barrier barrier;
static struct ky_list peer = KY_LIST_INIT(peer);
static unsigned n_done;
static int last_status;

static void done(struct op *op, int status, const char *message)
{
	n_done++;
	last_status = status;
	ky_loop_stop(&loop);
}

static struct op op = {done};

/* A barrier that waits for n answers. */
static void arm(unsigned n, uint64_t timeout_ns)
{
	assert_int_equal(ky_loop_init(&loop), 0);
	loop.clock = &loop_clock;
	now_ns = KY_NS_PER_MS;
	n_done = 0;
	barrier_init(&barrier, &loop, &op);
	for (unsigned i = 0; i < n; i++)
		assert_non_null(ticket_new(&peer, TICKET_ACK, i, &barrier));
	barrier_arm(&barrier, timeout_ns);
}

static void run(bool timed_out)
{
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_done, 1);
	assert_int_equal(last_status, timed_out ? -ETIMEDOUT : 0);
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
	arm(1, TIMEOUT_NS);
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
}

/* Each reply restarts the timeout for the others, up to the deadline. */
static void test_replies_extend(void **state)
{
	const unsigned n = 2 * BARRIER_MAX_EXTENSIONS;

	arm(n + 1, TIMEOUT_NS);
	for (unsigned i = 0; i < n; i++) {
		now_ns += TIMEOUT_NS - 1;
		ticket_done(ticket_find(&peer, TICKET_ACK, i));
	}
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + n * (TIMEOUT_NS - 1));
	arm(2, TIMEOUT_NS);
	now_ns += TIMEOUT_NS - 1;
	ticket_done(ticket_find(&peer, TICKET_ACK, 1));
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + 2 * TIMEOUT_NS - 1);
}

/* A trusted peer may take the time up to the deadline. */
static void test_trusted_peer(void **state)
{
	arm(2, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 1)->trusted = true;
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
}

/* The barrier does not wait for a stopped process, but for one that sleeps. */
static void test_stopped_peer(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			raise(SIGSTOP);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = getpid();
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
}

/* A process whose listener is always runnable. */
static pid_t fork_starved(void)
{
	int fds[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "kymo-listener");
		if (write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			;
	}
	assert_int_equal(read(fds[0], &byte, 1), 1); /* it has its name */
	close(fds[0]);
	close(fds[1]);
	return child;
}

/* The barrier waits for a process that gets no CPU, but only up to the deadline. */
static void test_starved_peer(void **state)
{
	pid_t child = fork_starved();

	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The deadline may pass between two looks at the clock, of which the first one is before it. */
static void test_deadline_passes_in_between(void **state)
{
	pid_t child = fork_starved();

	for (step_ns = 15 * KY_NS_PER_MS; step_ns < TIMEOUT_NS; step_ns += 15 * KY_NS_PER_MS) {
		arm(1, TIMEOUT_NS);
		ticket_find(&peer, TICKET_ACK, 0)->pid = child;
		run(true);
		assert_true(now_ns >= barrier.deadline_ns);
	}
	step_ns = 0;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_to_wait_for),
		cmocka_unit_test(test_all_answer),
		cmocka_unit_test(test_peer_goes),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_replies_extend),
		cmocka_unit_test(test_trusted_peer),
		cmocka_unit_test(test_stopped_peer),
		cmocka_unit_test(test_starved_peer),
		cmocka_unit_test(test_deadline_passes_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
