/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "sessiond/peers/barrier.h"

#define TIMEOUT_NS (1000 * KY_NS_PER_MS)

/* The loop's clock. It advances when the loop would sleep, and by `step_ns` at each reading. */
static uint64_t now_ns, step_ns;
static void (*on_pass)(void); /* called when time has passed; or NULL */

static uint64_t look_at_clock(struct ky_loop_clock *c)
{
	return now_ns += step_ns;
}

static void pass_time(struct ky_loop_clock *c, uint64_t ns)
{
	assert_true(ns < UINT64_MAX); /* else the barrier would never complete */
	now_ns += ns;
	if (on_pass)
		on_pass();
}

/* A /proc of our own: process 5 has one thread, 6, which runs a part of the time. */
static char proc[] = "/tmp/kymo-test-barrier-XXXXXX";

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
	proc_dir = "/proc";
	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	arm(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = getpid();
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
	proc_dir = proc;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static unsigned run_percent;

static void write_file(const char *path, const char *text)
{
	char full[128];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", proc, path);
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void write_run(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%" PRIu64 " 0 1\n", now_ns * run_percent / 100);
	write_file("5/task/6/schedstat", text);
}

static void make_process(char state)
{
	static const char *const dirs[] = {"5", "5/task", "5/task/6"};
	char path[128], text[64];

	for (unsigned i = 0; i < KY_ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", proc, dirs[i]);
		mkdir(path, 0700);
	}
	snprintf(text, sizeof(text), "5 (kymo-listener) %c 1", state);
	write_file("5/stat", text);
	write_file("5/wchan", "0");
	write_file("5/task/6/comm", "kymo-listener\n");
	write_file("5/task/6/stat", text);
	proc_dir = proc;
	on_pass = write_run;
}

static void remove_processes(void)
{
	static const char *const paths[] = {"5/task/6/schedstat", "5/task/6/stat", "5/task/6/comm",
		"5/task/6", "5/task", "5/wchan", "5/stat", "5", ""};
	char full[128];

	for (unsigned i = 0; i < KY_ARRAY_SIZE(paths); i++) {
		snprintf(full, sizeof(full), "%s/%s", proc, paths[i]);
		remove(full);
	}
	proc_dir = "/proc";
	on_pass = NULL;
}

static struct ticket *arm_for_process(void)
{
	struct ticket *t;

	arm(1, TIMEOUT_NS);
	t = ticket_find(&peer, TICKET_ACK, 0);
	t->pid = 5;
	write_run();
	return t;
}

/* The barrier waits for a process that gets no CPU, but only up to the deadline. */
static void test_starved_peer(void **state)
{
	run_percent = 1;
	arm_for_process();
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
}

/* It does not wait for one that has the CPU, and does not reply. */
static void test_spinning_peer(void **state)
{
	run_percent = 50;
	arm_for_process();
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
}

/* It waits for another user's peers as long as that user has patience left, which comes back. */
static void test_patience(void **state)
{
	struct user user = {.patience_ns = USER_PATIENCE_NS};

	run_percent = 1;
	arm_for_process()->user = &user;
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS + USER_PATIENCE_NS);
	arm_for_process()->user = &user;
	user.patience_at_ns = now_ns;
	run(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
	user.patience_at_ns = 0;
	assert_true(user_take_patience(
		&user, USER_PATIENCE_NS * USER_PATIENCE_REGAIN, USER_PATIENCE_NS));
}

/* Timely replies of a user's peers extend it only while that user has patience left. */
static void test_patience_for_replies(void **state)
{
	struct user user = {.patience_ns = USER_PATIENCE_NS};
	const unsigned n = 10;

	arm(n, TIMEOUT_NS);
	for (unsigned i = 0; i < n; i++)
		ticket_find(&peer, TICKET_ACK, i)->user = &user;
	for (unsigned i = 0; i < n - 1; i++) {
		now_ns += TIMEOUT_NS - 1;
		user.patience_at_ns = now_ns; /* none comes back */
		ticket_done(ticket_find(&peer, TICKET_ACK, i));
	}
	assert_true(barrier.give_up_ns <= KY_NS_PER_MS + TIMEOUT_NS + USER_PATIENCE_NS);
	run(true);
}

/* The time of a trusted peer is not for others. */
static void check_dropped(void)
{
	if (now_ns > KY_NS_PER_MS + TIMEOUT_NS)
		assert_null(ticket_find(&peer, TICKET_ACK, 0)->barrier);
}

static void test_trusted_peer_alone(void **state)
{
	void (*before)(void) = on_pass;

	arm(2, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 1)->trusted = true;
	on_pass = check_dropped;
	run(true);
	on_pass = before;
}

/*
 * A process that a debugger holds, or that is frozen with its control group, is treated like a
 * stopped one.
 */
static void test_held_peer(void **state)
{
	make_process('t');
	arm_for_process();
	run(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	make_process('S');
	write_file("5/wchan", "do_freezer_trap");
	arm_for_process();
	run(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	make_process('R');
}

/* The deadline may pass between two looks at the clock, of which the first one is before it. */
static void test_deadline_passes_in_between(void **state)
{
	run_percent = 0;
	for (step_ns = 15 * KY_NS_PER_MS; step_ns < TIMEOUT_NS; step_ns += 15 * KY_NS_PER_MS) {
		arm_for_process();
		run(true);
		assert_true(now_ns >= barrier.deadline_ns);
	}
	step_ns = 0;
}

static int set_up(void **state)
{
	if (!mkdtemp(proc))
		return -1;
	make_process('R');
	return 0;
}

static int tear_down(void **state)
{
	remove_processes();
	return 0;
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
		cmocka_unit_test(test_trusted_peer_alone),
		cmocka_unit_test(test_starved_peer),
		cmocka_unit_test(test_spinning_peer),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_patience_for_replies),
		cmocka_unit_test(test_held_peer),
		cmocka_unit_test(test_deadline_passes_in_between),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
