/* SPDX-License-Identifier: MIT */
#include "fleet/held.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "base/clock.h"
#include "svc/tree.h"

#define HOUR_S 3600
#define NOBODY 65534

static int64_t step_s, passed_s; /* by which the clock was set, and the time that has passed */
static char dir[] = "/tmp/kymo-held-XXXXXX";

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	int ret = __real_clock_gettime(id, ts);

	ts->tv_sec += passed_s + (id == CLOCK_REALTIME ? step_s : 0);
	return ret;
}

static void open_held(struct held *h)
{
	struct fleet_config c = {.name = "web", .hold_size = 1u << 20, .hold_us = 10000000};
	char why[256];

	snprintf(c.hold, sizeof(c.hold), "%s", dir);
	step_s = passed_s = 0;
	assert_int_equal(held_open(h, &c, why, sizeof(why)), 0);
	assert_int_equal(held_make(h, "one"), 0);
}

static bool is_held(const struct held *h, const char *id)
{
	return !faccessat(h->dir, id, F_OK, 0);
}

/* Its time is over after ten seconds, and not before. */
static void expect_end(struct held *h)
{
	held_expire(h);
	assert_true(is_held(h, "one"));
	passed_s = 9;
	held_expire(h);
	assert_true(is_held(h, "one"));
	passed_s = 12;
	held_expire(h);
	assert_false(is_held(h, "one"));
	close(h->dir);
}

static void test_time(void **state)
{
	struct held h;

	open_held(&h);
	expect_end(&h);
}

/* A snapshot that was taken before the clock was set is held as long as others. */
static void test_steps(void **state)
{
	static const int64_t steps[] = {HOUR_S, -HOUR_S, 3};
	struct held h;

	for (size_t i = 0; i < KY_ARRAY_SIZE(steps); i++) {
		open_held(&h);
		passed_s = 5;
		step_s = steps[i];
		expect_end(&h);
	}
}

/* The clock was wrong when the agent started, and is right now. */
static void test_future(void **state)
{
	struct held h;

	open_held(&h);
	h.ahead_s -= HOUR_S;
	expect_end(&h);
}

static void make_file(const struct held *h, const char *id, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", id, name);
	fd = openat(h->dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, "text", 4) == 4);
	close(fd);
}

static int complete_snapshot(const struct held *h, const char *id)
{
	struct kymo_value *report = kymo_value_new();
	int ret;

	kymo_value_set_bool(report, "ships", true);
	ret = held_complete(h, id, report);
	kymo_value_free(report);
	return ret;
}

/* The oldest one that is shipped makes room for a new one, and none that is to be shipped. */
static void test_room(void **state)
{
	const struct held *h = *state;
	char due[FLEET_ID_MAX + 1];

	assert_int_equal(held_make(h, "a"), 0);
	make_file(h, "a", "trace");
	assert_int_equal(complete_snapshot(h, "a"), 0);
	assert_true(held_next_due(h, "", due));
	assert_string_equal(due, "a");
	assert_int_equal(held_make(h, "b"), -EDQUOT);
	assert_int_equal(held_set_shipped(h, "a"), 0);
	assert_int_equal(held_make(h, "b"), 0);
	assert_false(is_held(h, "a"));
	assert_int_equal(held_remove(h, "b"), 0);
	assert_int_equal(held_remove(h, "b"), 0);
}

/* One that an agent did not complete before it was killed will never be shipped. */
static void test_incomplete(void **state)
{
	const struct held *h = *state;

	assert_int_equal(held_make(h, "a"), 0);
	make_file(h, "a", "trace");
	assert_int_equal(held_make(h, "b"), 0);
	assert_false(is_held(h, "a"));
	assert_int_equal(held_remove(h, "b"), 0);
}

static void expect_due(const struct held *h, const char *after, const char *id)
{
	char due[FLEET_ID_MAX + 1];

	assert_int_equal(held_next_due(h, after, due), *id != '\0');
	assert_string_equal(due, id);
}

/* Each one that is due has its turn, in the order of identifiers, and begins anew at the end. */
static void test_turns(void **state)
{
	static const char *const ids[] = {"b", "d", "c"};
	struct held h = *(const struct held *)*state;

	h.max_bytes = UINT64_MAX;
	for (size_t i = 0; i < KY_ARRAY_SIZE(ids); i++) {
		assert_int_equal(held_make(&h, ids[i]), 0);
		assert_int_equal(complete_snapshot(&h, ids[i]), 0);
	}
	expect_due(&h, "", "b");
	expect_due(&h, "a", "b");
	expect_due(&h, "b", "c");
	expect_due(&h, "c", "d");
	expect_due(&h, "d", "b");
	assert_int_equal(held_set_shipped(&h, "c"), 0);
	expect_due(&h, "b", "d");
	assert_int_equal(held_set_shipped(&h, "b"), 0);
	expect_due(&h, "d", "d"); /* the only one */
	assert_int_equal(held_set_shipped(&h, "d"), 0);
	expect_due(&h, "", "");
	for (size_t i = 0; i < KY_ARRAY_SIZE(ids); i++)
		assert_int_equal(held_remove(&h, ids[i]), 0);
}

static void expect_again(const struct held *h, const char *request)
{
	char again[FLEET_ID_MAX + 1] = "not written";

	assert_int_equal(held_get_again(h, "a", again), 0);
	assert_string_equal(again, request);
}

/* A request that cannot be read now is not taken for none. */
static void expect_no_answer_without_descriptors(const struct held *h)
{
	char again[FLEET_ID_MAX + 1];
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(held_get_again(h, "a", again), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* One that was shipped is due again by a request. A request for one that is due changes nothing. */
static void test_again(void **state)
{
	const struct held *h = *state;

	assert_int_equal(held_make(h, "a"), 0);
	assert_int_equal(complete_snapshot(h, "a"), 0);
	assert_int_equal(held_set_again(h, "a", "early"), 0);
	expect_again(h, "");
	assert_int_equal(held_set_shipped(h, "a"), 0);
	expect_due(h, "", "");
	assert_int_equal(held_set_again(h, "a", "request"), 0);
	expect_again(h, "request");
	expect_no_answer_without_descriptors(h);
	expect_due(h, "", "a");
	assert_int_equal(held_remove(h, "a"), 0);
}

/* A snapshot that stays on its host is never due; its report is there to be read. */
static void test_stays(void **state)
{
	const struct held *h = *state;
	struct kymo_value *report = kymo_value_new(), *read;

	kymo_value_set_bool(report, "ships", false);
	kymo_value_set_string(report, "reason", "a \"test\"");
	assert_int_equal(held_make(h, "a"), 0);
	assert_int_equal(held_complete(h, "a", report), 0);
	expect_due(h, "", "");
	read = held_report(h, "a");
	assert_string_equal(kymo_value_json(read), kymo_value_json(report));
	kymo_value_free(read);
	kymo_value_free(report);
	assert_int_equal(held_remove(h, "a"), 0);
}

/* The agent makes the directory with those above it, and is the only one there. */
static void test_alone(void **state)
{
	struct fleet_config c = {.name = "db", .hold_size = 1, .hold_us = 1};
	struct held h, other;
	char why[256] = "";

	snprintf(c.hold, sizeof(c.hold), "%s/above/below", dir);
	assert_int_equal(held_open(&h, &c, why, sizeof(why)), 0);
	assert_int_equal(strncmp(h.path, c.hold, strlen(c.hold)), 0);
	assert_string_equal(h.path + strlen(c.hold), "/db");
	assert_int_equal(held_open(&other, &c, why, sizeof(why)), -EBUSY);
	assert_string_equal(why, "another kymo-agent of host 'db' runs on this machine");
	close(other.dir);
	snprintf(c.name, sizeof(c.name), "web2");
	assert_int_equal(held_open(&other, &c, why, sizeof(why)), 0);
	close(other.dir);
	close(h.dir);
}

/* The error of the disk reaches the caller, also if some bytes were written before. */
static void test_full_disk(void **state)
{
	const struct held *h = *state;
	struct rlimit before, limit;

	assert_int_equal(held_make(h, "a"), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){.rlim_cur = 1, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(complete_snapshot(h, "a"), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_null(held_report(h, "a"));
	assert_int_equal(held_remove(h, "a"), 0);
}

/* Removes it, and makes another one, as a user: root may do everything. */
static void expect_as_user(const struct held *h, const char *id, int made)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		alarm(20);
		if (setuid(NOBODY) < 0)
			_exit(255);
		_exit(held_remove(h, id) == -EACCES && held_make(h, "new") == made ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_held(h, id));
}

/* If the oldest one cannot be removed, there is no room. */
static void test_not_removable(void **state)
{
	const struct held *h = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(held_make(h, "a"), 0);
	make_file(h, "a", HELD_SHIPPED);
	assert_int_equal(fchmod(h->dir, 0777), 0);
	assert_int_equal(fchmodat(h->dir, "a", 0755, 0), 0);
	expect_as_user(h, "a", -EACCES);
	assert_int_equal(fchmodat(h->dir, "a", 0711, 0), 0); /* cannot be opened either */
	expect_as_user(h, "a", -EACCES);
	assert_int_equal(held_remove(h, "a"), 0);
}

/* A directory with room for one snapshot. */
static int make_room(void **state)
{
	static struct held h = {.max_bytes = 4096, .max_us = UINT64_MAX};

	snprintf(h.path, sizeof(h.path), "%s/room-XXXXXX", dir);
	assert_non_null(mkdtemp(h.path));
	h.dir = open(h.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	step_s = passed_s = 0;
	*state = &h;
	return h.dir < 0;
}

static int close_room(void **state)
{
	const struct held *h = *state;

	return close(h->dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_future),
		cmocka_unit_test_setup_teardown(test_room, make_room, close_room),
		cmocka_unit_test_setup_teardown(test_incomplete, make_room, close_room),
		cmocka_unit_test_setup_teardown(test_turns, make_room, close_room),
		cmocka_unit_test_setup_teardown(test_again, make_room, close_room),
		cmocka_unit_test_setup_teardown(test_stays, make_room, close_room),
		cmocka_unit_test(test_alone),
		cmocka_unit_test_setup_teardown(test_full_disk, make_room, close_room),
		cmocka_unit_test_setup_teardown(test_not_removable, make_room, close_room),
	};
	int failed;

	assert_non_null(mkdtemp(dir));
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ky_tree_remove(AT_FDCWD, dir);
	return failed;
}
