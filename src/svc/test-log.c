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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bound)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
