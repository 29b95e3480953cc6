/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "svc/check.h"

/* Runs in a child; its last words are in text. */
static int run_child(int number, char *text, size_t size)
{
	int fds[2], status;
	ssize_t n;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		KY_CHECK(number > 0);
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_holds(void **state)
{
	char text[256];

	assert_int_equal(run_child(1, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void test_does_not_hold(void **state)
{
	char text[256];
	int status = run_child(0, text, sizeof(text));

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "'number > 0' does not hold (test-check.c:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holds),
		cmocka_unit_test(test_does_not_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
