/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "svc/log.h"

/* A log file that is full begins anew. */
static void test_bound(void **state)
{
	char path[] = "/tmp/kymo-test-log-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);
	struct stat st;

	assert_true(fd >= 0);
	unlink(path);
	ky_log_to_file(fd, false);
	assert_int_equal(ftruncate(fd, KY_LOG_MAX), 0);
	ky_error("one");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size > KY_LOG_MAX);
	ky_error("two");
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_size > 0 && st.st_size < 1024);
	close(fd);
}

static time_t now;

static time_t stand_still(time_t *unused)
{
	return now;
}

static unsigned count_lines(FILE *f, const char *text)
{
	char line[256];
	unsigned n = 0;

	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, text) != NULL;
	return n;
}

/* A user who causes many lines pushes out neither the daemon's own nor those of others. */
static void test_users(void **state)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	assert_true(fcntl(fileno(f), F_SETFL, O_APPEND) >= 0);
	ky_log_to_file(fileno(f), false);
	ky_log_clock = stand_still;
	for (now = 1000000; now < 1000000 + KY_LOG_USER_S; now++) {
		ky_log_set_cause(1001);
		for (int i = 0; i < 1000; i++)
			ky_error("noise");
		ky_log_set_cause(KY_LOG_NOBODY);
		ky_error("own");
	}
	assert_int_equal(count_lines(f, "noise"), KY_LOG_USER_BURST);
	assert_int_equal(count_lines(f, "own"), KY_LOG_USER_S);
	ky_log_set_cause(1002);
	ky_error("other");
	assert_int_equal(count_lines(f, "other"), 1);
	assert_int_equal(count_lines(f, "uid 1001: 59980 more messages left out"), 1);
	for (uint32_t uid = 2000; uid < 2000 + 10 * KY_LOG_USERS; uid++) {
		ky_log_set_cause(uid);
		ky_error("crowd");
		now += uid % 8 == 0;
	}
	assert_true(count_lines(f, "crowd") <= 3 * (KY_LOG_USERS + KY_LOG_USER_BURST));
	assert_true(count_lines(f, "other users: ") >= 1);
	ky_log_set_cause(KY_LOG_NOBODY);
	ky_log_clock = time;
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound), cmocka_unit_test(test_users)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
