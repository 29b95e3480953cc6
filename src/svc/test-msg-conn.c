/* SPDX-License-Identifier: MIT */
#include "svc/msg-conn.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <cmocka.h>

#define QUEUE_MAX (256u << 10)

static struct ky_loop loop;
static struct ky_msg_conn here;
static int there;
static int n_messages, closed_error, kept_fd;
static size_t last_len;

static void message(struct ky_msg_conn *c, const void *buf, size_t len, int *fds, size_t n_fds)
{
	n_messages++;
	last_len = len;
	if (n_fds) {
		kept_fd = fds[0];
		fds[0] = -1;
	}
	if (len == 4 && !memcmp(buf, "stop", 4))
		ky_loop_stop(&loop);
	if (len == 4 && !memcmp(buf, "fail", 4))
		ky_msg_conn_fail(c, -EINVAL);
}

static void on_msg_closed(struct ky_msg_conn *c, int error)
{
	closed_error = error;
	ky_msg_conn_deinit(c);
	ky_loop_stop(&loop);
}

static const struct ky_msg_conn_ops ops = {.message = message, .closed = on_msg_closed};

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int setup(void **state)
{
	int fds[2];

	n_messages = 0;
	last_len = 0;
	closed_error = 1;
	kept_fd = -1;
	if (ky_loop_init(&loop) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	there = fds[1];
	return ky_msg_conn_init(&here, &loop, fds[0], &ops, QUEUE_MAX, 1);
}

static int teardown(void **state)
{
	ky_msg_conn_deinit(&here);
	ky_close(kept_fd);
	there = ky_close(there);
	ky_loop_deinit(&loop);
	return 0;
}

static void send_there(const char *text, size_t n_fds)
{
	int fds[12];
	char control[CMSG_SPACE(sizeof(fds))] = {0};
	struct iovec iov = {.iov_base = (void *)text, .iov_len = strlen(text)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *cmsg;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		for (size_t i = 0; i < n_fds; i++)
			fds[i] = STDIN_FILENO;
		memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
	}
	assert_true(sendmsg(there, &msg, 0) >= 0);
}

static void test_messages_come_whole(void **state)
{
	send_there("abc", 0);
	send_there("stop", 0);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_messages, 2);
	assert_int_equal(last_len, 4);
}

static void test_descriptors(void **state)
{
	int before = count_fds();

	send_there("stop", 1);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_true(kept_fd >= 0);
	assert_int_equal(count_fds(), before + 1);
}

static void refuse_fds(size_t n)
{
	int before = count_fds();

	send_there("x", n);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -EPROTO);
	assert_int_equal(n_messages, 0);
	assert_int_equal(count_fds(), before - 1); /* our end is closed */
}

static void test_too_many_descriptors(void **state)
{
	refuse_fds(2);
}

static void test_more_descriptors_than_room(void **state)
{
	refuse_fds(12);
}

static void test_closed_comes_after_message(void **state)
{
	send_there("fail", 0);
	send_there("more", 0);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -EINVAL);
	assert_int_equal(n_messages, 1);
}

static void test_peers_end(void **state)
{
	there = ky_close(there);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, 0);
}

/* The peer sends, and exits before the reply. unread: it has not read all that it was sent. */
static void closes_after_sending(bool unread)
{
	if (unread)
		assert_int_equal(ky_msg_conn_send(&here, "old", 3, NULL, 0), 0);
	send_there("abc", 0);
	send_there("defg", 1);
	there = ky_close(there);
	assert_int_equal(
		ky_msg_conn_send(&here, "reply", 5, NULL, 0), unread ? -ECONNRESET : -EPIPE);
	assert_int_equal(ky_msg_conn_send(&here, "reply", 5, NULL, 0), -EPIPE);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_messages, 2);
	assert_int_equal(last_len, 4);
	assert_true(kept_fd >= 0);
	assert_int_equal(closed_error, 0);
}

static void test_last_messages_before_failed_reply(void **state)
{
	closes_after_sending(false);
}

static void test_last_messages_of_peer_that_has_not_read(void **state)
{
	closes_after_sending(true);
}

static void test_failure_in_last_messages(void **state)
{
	send_there("fail", 0);
	send_there("more", 0);
	there = ky_close(there);
	assert_int_equal(ky_msg_conn_send(&here, "reply", 5, NULL, 0), -EPIPE);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -EINVAL);
	assert_int_equal(n_messages, 1);
}

/* The connection ends although the peer still exists. */
static void test_peer_that_shuts_its_reading_end(void **state)
{
	send_there("abc", 0);
	assert_int_equal(shutdown(there, SHUT_RD), 0);
	assert_int_equal(ky_msg_conn_send(&here, "reply", 5, NULL, 0), -EPIPE);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_messages, 1);
	assert_int_equal(closed_error, 0);
}

static int next_expected;

/* Takes what the peer was sent; the loop looks at the socket in between. */
static void drain_peer(struct ky_timer *t)
{
	int got;

	while (recv(there, &got, sizeof(got), 0) == sizeof(got))
		assert_int_equal(got, next_expected++);
	if (here.n_queued_bytes)
		ky_timer_set(&loop, t, 0);
	else
		ky_loop_stop(&loop);
}

static void test_queue_keeps_order(void **state)
{
	struct ky_timer timer;
	int n;

	ky_timer_init(&timer, drain_peer);
	for (n = 0; n < 1000 && !here.n_queued_bytes; n++)
		assert_int_equal(ky_msg_conn_send(&here, &n, sizeof(n), NULL, 0), 0);
	assert_true(here.n_queued_bytes > 0);
	for (int i = 0; i < 100; i++, n++)
		assert_int_equal(ky_msg_conn_send(&here, &n, sizeof(n), NULL, 0), 0);
	ky_timer_set(&loop, &timer, 0);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(here.n_queued_bytes, 0);
}

static void test_peer_that_never_reads_is_dropped(void **state)
{
	static const char text[4096];
	int fd = STDIN_FILENO, before = count_fds(), ret;

	do {
		ret = ky_msg_conn_send(&here, text, sizeof(text), &fd, 1);
	} while (!ret);
	assert_int_equal(ret, -ENOBUFS);
	assert_int_equal(ky_msg_conn_send(&here, text, 1, NULL, 0), -EPIPE);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -ENOBUFS);
	assert_int_equal(count_fds(), before - 1);
}

/*
 * Descriptors are scarce: short messages with descriptors reach the limit long before their bytes
 * do.
 */
static void test_queued_descriptors_are_dear(void **state)
{
	int fd = STDIN_FILENO, n_fds = 0, before = count_fds();

	while (!ky_msg_conn_send(&here, "x", 1, &fd, 1))
		n_fds = count_fds() - before;
	assert_in_range(n_fds, 1, QUEUE_MAX / 1024);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(closed_error, -ENOBUFS);
}

/*
 * The peer would take a message of 0 bytes for a hang-up, and would miss a message that was
 * omitted.
 */
static void test_no_message_is_left_out(void **state)
{
	static const char text[KY_MSG_CONN_MAX + 1];
	static const int lengths[] = {0, -EMSGSIZE, sizeof(text)};

	for (size_t i = 0; i < KY_ARRAY_SIZE(lengths); i++) {
		assert_int_equal(ky_msg_conn_send(&here, text, lengths[i], NULL, 0), -EMSGSIZE);
		assert_int_equal(ky_loop_run(&loop), 0);
		assert_int_equal(closed_error, -EMSGSIZE);
		teardown(state);
		setup(state);
	}
}

/* Work of another user, while a message of this one takes several turns. */
static int turn_of_other = -1;

static void run_other(struct ky_job *j)
{
	turn_of_other = n_messages;
}

/* Takes five slices. */
static void long_message(struct ky_msg_conn *c, const void *buf, size_t len, int *fds, size_t n_fds)
{
	n_messages++;
	assert_int_equal(len, 4);
	assert_memory_equal(buf, "long", 4);
	assert_int_equal(n_fds, n_messages == 1);
	if (n_messages == 5) {
		ky_loop_stop(&loop);
		return;
	}
	while (!ky_msg_conn_is_over(c))
		;
	ky_msg_conn_defer(c);
}

/*
 * A message that takes long is handled in parts, without its descriptors after the first, and
 * before the next message. Others are served in between.
 */
static void test_message_in_parts(void **state)
{
	static const struct ky_msg_conn_ops long_ops = {
		.message = long_message, .closed = on_msg_closed};
	struct ky_msg_account account, other;
	struct ky_shares shares;
	struct ky_job job;

	ky_shares_init(&shares, &loop);
	ky_msg_account_init(&account, QUEUE_MAX, &shares);
	ky_msg_account_init(&other, QUEUE_MAX, &shares);
	ky_job_init(&job, run_other);
	here.ops = &long_ops;
	here.account = &account;
	send_there("long", 1);
	send_there("next", 0);
	ky_share_add(&other.share, &loop, &job);
	assert_int_equal(ky_loop_run(&loop), 0);
	assert_int_equal(n_messages, 5);
	assert_true(turn_of_other == 0 || turn_of_other == 1);
	ky_msg_conn_deinit(&here);
	ky_msg_account_deinit(&account);
	ky_msg_account_deinit(&other);
	ky_job_cancel(&shares.work);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_messages_come_whole),
		TEST(test_descriptors),
		TEST(test_too_many_descriptors),
		TEST(test_more_descriptors_than_room),
		TEST(test_closed_comes_after_message),
		TEST(test_peers_end),
		TEST(test_last_messages_before_failed_reply),
		TEST(test_last_messages_of_peer_that_has_not_read),
		TEST(test_failure_in_last_messages),
		TEST(test_peer_that_shuts_its_reading_end),
		TEST(test_queue_keeps_order),
		TEST(test_peer_that_never_reads_is_dropped),
		TEST(test_message_in_parts),
		TEST(test_queued_descriptors_are_dear),
		TEST(test_no_message_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
