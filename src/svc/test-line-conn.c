/* SPDX-License-Identifier: MIT */
#include "svc/line-conn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <cmocka.h>

#include "svc/log.h"

static struct ky_loop loop;
static struct ky_line_conn here;
static struct ky_timer later;
static int there, n_lines, closed_error;
static bool answer_later;
static char lines[256];

static void on_line(struct ky_line_conn *c, char *text, size_t len)
{
	assert_int_equal(strlen(text), len);
	n_lines++;
	strncat(lines, text, sizeof(lines) - strlen(lines) - 2);
	strcat(lines, ";");
	if (answer_later)
		ky_timer_set(&loop, &later, KY_NS_PER_MS);
	else
		ky_line_conn_answer(c, text);
}

static void run_later(struct ky_timer *t)
{
	assert_int_equal(n_lines, 1); /* not one line more before the answer */
	answer_later = false;
	ky_line_conn_answer(&here, "late");
}

static void on_line_closed(struct ky_line_conn *c, int error)
{
	closed_error = error;
	ky_line_conn_deinit(c);
	ky_loop_stop(&loop);
}

static int setup(void **state)
{
	static const struct ky_line_conn_ops ops = {.line = on_line, .closed = on_line_closed};
	int fds[2];

	n_lines = 0;
	closed_error = 1;
	answer_later = false;
	lines[0] = '\0';
	ky_timer_init(&later, run_later);
	if (ky_loop_init(&loop) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	there = fds[1];
	return ky_line_conn_init(&here, &loop, fds[0], &ops);
}

static int teardown(void **state)
{
	ky_line_conn_deinit(&here);
	there = ky_close(there);
	ky_loop_deinit(&loop);
	return 0;
}

static void expect_answers(const char *wanted)
{
	char buf[256];
	ssize_t n = recv(there, buf, sizeof(buf) - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	assert_string_equal(buf, wanted);
}

/* A client that has said all it wants still gets its answers. */
static void test_lines_in_order(void **state)
{
	assert_int_equal(send(there, "a\nbc\n\nunfinished", 16, 0), 16);
	shutdown(there, SHUT_WR);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, 0);
	assert_string_equal(lines, "a;bc;;");
	expect_answers("a\nbc\n\n");
}

static void test_one_request_at_a_time(void **state)
{
	answer_later = true;
	assert_int_equal(send(there, "a\nb\n", 4, 0), 4);
	shutdown(there, SHUT_WR);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_string_equal(lines, "a;b;");
	expect_answers("late\nb\n");
}

static void send_more(struct ky_timer *t)
{
	static const char text[4096] = "x";

	while (send(there, text, sizeof(text), MSG_NOSIGNAL) > 0)
		;
	ky_timer_set(&loop, t, 0);
}

static void test_line_without_end(void **state)
{
	struct ky_timer more;

	ky_timer_init(&more, send_more);
	ky_timer_set(&loop, &more, 0);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -EMSGSIZE);
	assert_int_equal(n_lines, 0);
	ky_timer_cancel(&more);
}

static void test_client_goes_while_waiting(void **state)
{
	answer_later = true;
	assert_int_equal(send(there, "a\n", 2, 0), 2);
	there = ky_close(there);
	assert_int_equal(ky_loop_run(&loop), 0);
	ky_timer_cancel(&later);
	assert_int_equal(closed_error, 0);
}

static void test_escape(void **state)
{
	char buf[32];

	assert_string_equal(
		ky_log_escape(buf, sizeof(buf), "a\x1b[31m\n\xc3\xa9"), "a\\x1b[31m\\x0a\xc3\xa9");
	/* CSI as one character, a byte that is no UTF-8, and RIGHT-TO-LEFT OVERRIDE */
	assert_string_equal(ky_log_escape(buf, sizeof(buf), "\xc2\x9bm\xff\xe2\x80\xae"),
		"\\xc2\\x9bm\\xff\\xe2\\x80\\xae");
	ky_log_escape(buf, 8, "\1\1\1\1");
	assert_string_equal(buf, "\\x01");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines_in_order),
		TEST(test_one_request_at_a_time),
		TEST(test_line_without_end),
		TEST(test_client_goes_while_waiting),
		cmocka_unit_test(test_escape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
