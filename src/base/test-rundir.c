/* SPDX-License-Identifier: MIT */
#include "base/rundir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void test_rundir(void **state)
{
	char buf[32];

	setenv("KYMO_RUNDIR", "/tmp/x", 1);
	assert_int_equal(ky_rundir(0, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/tmp/x");
	assert_int_equal(ky_rundir(0, buf, 6), -ENAMETOOLONG);
	assert_int_equal(ky_rundir(0, buf, 7), 0);
	setenv("KYMO_RUNDIR", "", 1);
	assert_int_equal(ky_rundir(0, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/run/kymo");
	unsetenv("KYMO_RUNDIR");
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(ky_rundir(7, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/run/user/7/kymo");
	unsetenv("XDG_RUNTIME_DIR");
	setenv("HOME", "/home/u", 1);
	assert_int_equal(ky_rundir(7, buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/home/u/.kymo");
	unsetenv("HOME");
	assert_int_equal(ky_rundir(7, buf, sizeof(buf)), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rundir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
