/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "abi/ended.h"
#include "sessiond/model/contents.h"
#include "sessiond/peers/consumer.h"
#include "sessiond/peers/proc-state.h"

#define SECOND_NS (1000 * KY_NS_PER_MS)

/* The loop's clock, which the tests set. */
static uint64_t now_ns;

static uint64_t look_at_clock(struct ky_loop_clock *c)
{
	return now_ns;
}

static struct ky_loop_clock loop_clock = {.now_ns = look_at_clock};

/* A /proc of our own, with process 5. */
static char proc[] = "/tmp/kymo-test-health-XXXXXX";
static struct env env;
static struct session session = {.env = &env};
static struct consumer consumer = {.session = &session, .process = 5, .connected = true};

static void set_state(char state)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/5/stat", proc);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "5 (kymo-consumerd) %c 1 5 5 0\n", state);
	assert_int_equal(fclose(f), 0);
}

/* Returns after how many tenths of a second without a step the consumer is stuck. */
static unsigned stuck_after(char state)
{
	const struct ky_resume_session memory = {.alive_ns = SECOND_NS, .due_ns = SECOND_NS};
	unsigned n = 0;

	set_state(state);
	assert_int_equal(pwrite(consumer.memory_fd, &memory, sizeof(memory), 0), sizeof(memory));
	for (now_ns = SECOND_NS; !consumer_is_stuck(&consumer); n++)
		now_ns += SECOND_NS / 10;
	return n;
}

/* While its parent reaps it, a process is dead for a moment, and no zombie any more. */
static void test_status_of_the_dead(void **state)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	assert_true(pidfd >= 0);
	set_state('Z');
	assert_int_equal(proc_wait_status(pidfd, 5), 0);
	set_state('X');
	assert_int_equal(proc_wait_status(pidfd, 5), 0);
	set_state('S');
	assert_int_equal(proc_wait_status(pidfd, 5), KY_ENDED_UNKNOWN);
	close(pidfd);
}

static void test_stuck(void **state)
{
	assert_int_equal(stuck_after('T'), 11);
	assert_int_equal(stuck_after('S'), 51);
	assert_int_equal(stuck_after('D'), 51);
}

/* One that gets no CPU is given more time than one that sleeps. */
static void test_starved(void **state)
{
	assert_int_equal(stuck_after('R'), 201);
}

static void ignore_trouble(struct consumer *c, const char *what)
{
}

/*
 * Returns after how many milliseconds the process begins that replaces a consumer that dies. If the
 * consumer could work, that process is started at once, and waits.
 */
static unsigned replaced_after(struct consumer *c)
{
	uint64_t started_ms;

	siginfo_t info;

	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOWAIT), 0);
	consumer_reap(c);
	assert_int_equal(c->pid, 0);
	started_ms = (c->restart.due_ns - ky_loop_time_ns(&env.loop)) / KY_NS_PER_MS;
	assert_int_equal(c->answered ? started_ms : c->rest_ms, 0);
	return (unsigned)(started_ms + c->rest_ms);
}

/* Until it is replaced, nobody else has what the session needs: the first time at once. */
static void test_replaced(void **state)
{
	static const struct consumer_ops ops = {.trouble = ignore_trouble};
	static const unsigned delays[] = {0, 20, 40, 80, 160, 160};
	static const unsigned long_delays[] = {0, 20, 40, 80, 160, 320};
	struct consumer c;

	ky_list_init(&env.loop.timers);
	consumer_init(&c, &session, "", &ops);
	c.ready = c.answered = true;
	c.started_ns = now_ns;
	for (size_t i = 0; i < KY_ARRAY_SIZE(delays); i++)
		assert_int_equal(replaced_after(&c), delays[i]);
	now_ns += 20 * SECOND_NS;
	c.answered = false;
	for (size_t i = 0; i < KY_ARRAY_SIZE(long_delays); i++) {
		assert_int_equal(replaced_after(&c), long_delays[i]);
		c.started_ns = now_ns;
	}
	consumer_deinit(&c);
}

static int set_up(void **state)
{
	char path[64];

	env.loop.clock = &loop_clock;
	consumer.memory_fd = memfd_create("memory", MFD_CLOEXEC);
	proc_dir = mkdtemp(proc);
	snprintf(path, sizeof(path), "%s/5", proc);
	return consumer.memory_fd < 0 || !proc_dir || mkdir(path, 0700) < 0;
}

static int tear_down(void **state)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/5/stat", proc);
	unlink(path);
	snprintf(path, sizeof(path), "%s/5", proc);
	rmdir(path);
	return rmdir(proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status_of_the_dead),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_starved),
		cmocka_unit_test(test_replaced),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
