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

static bool no_memory; /* calloc() fails */

void *__wrap_calloc(size_t n, size_t size);
void *__real_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

static void done(struct op *op, int status, const char *message)
{
	n_done++;
	last_status = status;
	ky_loop_stop(&loop);
}

static struct op op = {done};

/* A barrier that waits for n answers. */
static void arm_barrier(unsigned n, uint64_t timeout_ns)
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

static void run_barrier(bool timed_out)
{
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_done, 1);
	assert_int_equal(last_status, timed_out ? -ETIMEDOUT : 0);
	ticket_done_all(&peer);
	ky_loop_deinit(&loop);
}

static void test_nobody_to_wait_for(void **state)
{
	arm_barrier(0, TIMEOUT_NS);
	run_barrier(false);
}

static void test_all_answer(void **state)
{
	arm_barrier(2, TIMEOUT_NS);
	ticket_done(ticket_find(&peer, TICKET_ACK, 1));
	ticket_done(ticket_find(&peer, TICKET_ACK, 0));
	run_barrier(false);
}

/* Of the replies of one kind, a barrier may wait for the last alone. */
static void test_last_reply(void **state)
{
	arm_barrier(0, TIMEOUT_NS);
	barrier_deinit(&barrier);
	barrier_init(&barrier, &loop, &op);
	for (int i = 0; i < 3; i++)
		assert_non_null(ticket_new(&peer, TICKET_QUERY, 7, NULL));
	assert_non_null(ticket_new(&peer, TICKET_ACK, 7, NULL));
	assert_null(ticket_find_last(&peer, TICKET_QUERY, 8));
	ticket_await(ticket_find_last(&peer, TICKET_QUERY, 7), &barrier);
	barrier_arm(&barrier, TIMEOUT_NS);
	for (int i = 0; i < 3; i++) {
		assert_false(ky_list_empty(&barrier.tickets));
		ticket_done(ticket_find(&peer, TICKET_QUERY, 7));
	}
	run_barrier(false);
}

static void test_peer_goes(void **state)
{
	arm_barrier(2, TIMEOUT_NS);
	ticket_done_all(&peer);
	run_barrier(false);
}

/* A peer that cannot be asked has not replied. */
static void test_no_memory(void **state)
{
	for (unsigned n = 0; n < 2; n++) {
		arm_barrier(n, TIMEOUT_NS);
		no_memory = true;
		assert_null(ticket_new(&peer, TICKET_ACK, 1, NULL));
		assert_null(ticket_new(&peer, TICKET_ACK, 1, &barrier));
		no_memory = false;
		ticket_done(ticket_find(&peer, TICKET_ACK, 0));
		run_barrier(true);
		assert_int_equal(now_ns, KY_NS_PER_MS);
	}
}

static void test_silence(void **state)
{
	arm_barrier(1, TIMEOUT_NS);
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
}

/* Each reply restarts the timeout for the others, up to the deadline. */
static void test_replies_extend(void **state)
{
	const unsigned n = 2 * BARRIER_MAX_EXTENSIONS;

	arm_barrier(n + 1, TIMEOUT_NS);
	for (unsigned i = 0; i < n; i++) {
		now_ns += TIMEOUT_NS - 1;
		ticket_done(ticket_find(&peer, TICKET_ACK, i));
	}
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + n * (TIMEOUT_NS - 1));
	arm_barrier(2, TIMEOUT_NS);
	now_ns += TIMEOUT_NS - 1;
	ticket_done(ticket_find(&peer, TICKET_ACK, 1));
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + 2 * TIMEOUT_NS - 1);
}

/* A trusted peer may take the time up to the deadline. */
static void test_trusted_peer(void **state)
{
	arm_barrier(2, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 1)->trusted = true;
	run_barrier(true);
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
	arm_barrier(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = child;
	run_barrier(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	arm_barrier(1, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 0)->pid = getpid();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
	proc_dir = proc;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
}

static unsigned run_percent, delay_percent; /* of the time: on a CPU, waiting for one */

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

	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		now_ns * run_percent / 100, now_ns * delay_percent / 100, run_percent ? now_ns : 1);
	write_file("5/task/6/schedstat", text);
}

static void write_dumper(char state)
{
	char text[64];

	snprintf(text, sizeof(text), "5 (kymo-statedump) %c 1", state);
	write_file("5/task/7/stat", text);
	write_file("5/task/7/schedstat", "1 1 1\n");
}

static void make_process(char state)
{
	static const char *const dirs[] = {"5", "5/task", "5/task/6", "5/task/7"};
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
	write_file("5/task/7/comm", "kymo-statedump\n");
	write_dumper('S');
	proc_dir = proc;
	on_pass = write_run;
}

static void remove_processes(void)
{
	static const char *const paths[] = {"5/task/6/schedstat", "5/task/6/stat", "5/task/6/comm",
		"5/task/6", "5/task/7/schedstat", "5/task/7/stat", "5/task/7/comm", "5/task/7",
		"5/task", "5/wchan", "5/stat", "5", ""};
	char full[128];

	for (unsigned i = 0; i < KY_ARRAY_SIZE(paths); i++) {
		snprintf(full, sizeof(full), "%s/%s", proc, paths[i]);
		remove(full);
	}
	proc_dir = "/proc";
	on_pass = NULL;
}

/* A peer replies a moment before the timeout. */
static void answer_one(void)
{
	static uint64_t last_ns;

	if (now_ns < last_ns || now_ns - last_ns >= 9 * KY_NS_PER_MS) {
		last_ns = now_ns;
		ticket_done(ky_list_entry(peer.next, struct ticket, node));
	}
}

static struct ticket *arm_for_process(void)
{
	struct ticket *t;

	arm_barrier(1, TIMEOUT_NS);
	t = ticket_find(&peer, TICKET_ACK, 0);
	t->pid = 5;
	write_run();
	return t;
}

/* The barrier waits for a process that gets no CPU, but only up to the deadline. */
static void test_starved_peer(void **state)
{
	run_percent = 0;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
	run_percent = 1;
	delay_percent = 80;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
	delay_percent = 0;
}

/* It waits likewise for a process whose listener waits for the disk. */
static void test_peer_on_disk(void **state)
{
	make_process('D');
	run_percent = 1;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
	make_process('R');
}

/* It waits likewise for a process whose state dump gets no CPU. */
static void test_starved_state_dump(void **state)
{
	make_process('S');
	write_dumper('R');
	run_percent = 1;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + BARRIER_MAX_EXTENSIONS * TIMEOUT_NS);
	make_process('R');
}

/* It does not wait for one that sleeps, and happens to be runnable whenever it is looked at. */
static void test_peer_that_seems_starved(void **state)
{
	run_percent = 1;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
}

/* It does not wait for one that has the CPU, and does not reply. */
static void test_spinning_peer(void **state)
{
	run_percent = 50;
	arm_for_process();
	run_barrier(true);
	assert_int_equal(now_ns, KY_NS_PER_MS + TIMEOUT_NS);
}

static struct users users;
static struct user *one, *two;

static void get_users(void)
{
	users_init(&users, &loop);
	users.own = getuid() + 1; /* of somebody else */
	one = user_get(&users, 1001);
	two = user_get(&users, 1002);
}

static void put_users(void)
{
	user_unref(one);
	user_unref(two);
}

/* As many milliseconds as the barrier has waited, in units in which waiting is charged. */
static uint64_t waited_ms(void)
{
	return (now_ns - KY_NS_PER_MS) / KY_NS_PER_MS / 10 * 10;
}

/*
 * It waits for another user's peers as long as that user has patience left, also if they are
 * starved; the patience comes back.
 */
static void test_patience(void **state)
{
	get_users();
	run_percent = 0;
	arm_for_process()->user = one;
	run_barrier(true);
	assert_in_range(waited_ms(), USER_PATIENCE_NS / KY_NS_PER_MS,
		USER_PATIENCE_NS / KY_NS_PER_MS * 3 / 2);
	one->patience.at_ns = 0;
	arm_for_process()->user = one;
	run_barrier(true);
	assert_in_range(waited_ms(), 10, 20);
	assert_true(user_take_patience(one, USER_PATIENCE_NS * PATIENCE_REGAIN, USER_PATIENCE_NS));
	put_users();
}

/* Once a command has waited for a user's silent peers in vain, none waits for the others. */
static void test_patience_for_silence(void **state)
{
	get_users();
	for (unsigned n = 0; n < 3; n++) {
		arm_barrier(2, APP_ANSWER_NS);
		for (unsigned i = 0; i < 2; i++) /* both at once: charged once */
			ticket_find(&peer, TICKET_ACK, i)->user = one;
		one->patience.at_ns = 0;
		run_barrier(true);
		assert_int_equal(waited_ms(), n ? 10 : APP_ANSWER_NS / KY_NS_PER_MS);
	}
	assert_false(user_take_patience(one, now_ns, USER_PATIENCE_NS));
	assert_true(user_take_patience(two, now_ns, USER_PATIENCE_NS));
	put_users();
}

/* A user's peer that has not replied to the last command makes the next one wait no more. */
static void test_late_peer(void **state)
{
	get_users();
	arm_barrier(1, APP_ANSWER_NS);
	ticket_find(&peer, TICKET_ACK, 0)->user = one;
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(waited_ms(), APP_ANSWER_NS / KY_NS_PER_MS);
	ky_loop_deinit(&loop);
	for (unsigned owes = 2; owes-- > 0; ticket_done(ticket_find(&peer, TICKET_ACK, 0))) {
		assert_int_equal(ky_loop_init(&loop), 0);
		loop.clock = &loop_clock;
		now_ns = KY_NS_PER_MS;
		barrier_init(&barrier, &loop, &op);
		ticket_new(&peer, TICKET_ACK, 1, &barrier)->user = one;
		barrier_arm(&barrier, APP_ANSWER_NS);
		assert_int_equal(ky_loop_run(&loop), 0);
		assert_int_equal(last_status, -ETIMEDOUT);
		assert_int_equal(waited_ms(), owes ? 10 : APP_ANSWER_NS / KY_NS_PER_MS);
		ticket_done(ticket_find(&peer, TICKET_ACK, 1));
		ky_loop_deinit(&loop);
	}
	put_users();
}

/* Timely replies of a user's peers extend it only while that user has patience left. */
static void test_patience_for_replies(void **state)
{
	const unsigned n = 400;

	get_users();
	arm_barrier(n, TIMEOUT_NS);
	for (unsigned i = 0; i < n; i++)
		ticket_find(&peer, TICKET_ACK, i)->user = one;
	on_pass = answer_one;
	run_barrier(true);
	on_pass = NULL;
	assert_true(waited_ms() <= USER_PATIENCE_NS / KY_NS_PER_MS * 3 / 2);
	put_users();
}

/* All users together have a limit, however they take turns. */
static void test_patience_of_all_users(void **state)
{
	struct user *many[100];
	uint64_t sum_ms = 0;

	get_users();
	for (unsigned i = 0; i < KY_ARRAY_SIZE(many); i++) {
		many[i] = user_get(&users, 2000 + i);
		arm_barrier(1, APP_ANSWER_NS);
		ticket_find(&peer, TICKET_ACK, 0)->user = many[i];
		users.patience.at_ns = 0;
		run_barrier(true);
		sum_ms += waited_ms() > 10 ? waited_ms() : 0;
	}
	assert_true(sum_ms <= USERS_PATIENCE_NS / KY_NS_PER_MS * 3 / 2);
	for (unsigned i = 0; i < KY_ARRAY_SIZE(many); i++)
		user_unref(many[i]);
	put_users();
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

	arm_barrier(2, TIMEOUT_NS);
	ticket_find(&peer, TICKET_ACK, 1)->trusted = true;
	on_pass = check_dropped;
	run_barrier(true);
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
	run_barrier(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	make_process('S');
	write_file("5/wchan", "do_freezer_trap");
	arm_for_process();
	run_barrier(true);
	assert_true(now_ns < KY_NS_PER_MS + TIMEOUT_NS);
	make_process('R');
}

/* The deadline may pass between two looks at the clock, of which the first one is before it. */
static void test_deadline_passes_in_between(void **state)
{
	run_percent = 0;
	for (step_ns = 15 * KY_NS_PER_MS; step_ns < TIMEOUT_NS; step_ns += 15 * KY_NS_PER_MS) {
		arm_for_process();
		run_barrier(true);
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
		cmocka_unit_test(test_last_reply),
		cmocka_unit_test(test_peer_goes),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_replies_extend),
		cmocka_unit_test(test_trusted_peer),
		cmocka_unit_test(test_stopped_peer),
		cmocka_unit_test(test_trusted_peer_alone),
		cmocka_unit_test(test_starved_peer),
		cmocka_unit_test(test_peer_on_disk),
		cmocka_unit_test(test_starved_state_dump),
		cmocka_unit_test(test_spinning_peer),
		cmocka_unit_test(test_peer_that_seems_starved),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_patience_for_silence),
		cmocka_unit_test(test_late_peer),
		cmocka_unit_test(test_patience_of_all_users),
		cmocka_unit_test(test_patience_for_replies),
		cmocka_unit_test(test_held_peer),
		cmocka_unit_test(test_deadline_passes_in_between),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
