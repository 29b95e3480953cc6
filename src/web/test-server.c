/* SPDX-License-Identifier: MIT */
/* The web server over the loopback, with contents that the test makes. */
#include "web/server.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>
#include <cmocka.h>

#include "base/util.h"

#define SECRET	 "the page of the trace"
#define MAX_DATA 8
#define BURST	 200
#define CROWDED	 64

static struct ky_web *web;
static char token[64], host[64];
static struct sockaddr_in address;

/* --- a clock that may stand, and contents --- */

static bool clock_stands;
static struct timespec stands_at;
static int page_result, data_result, state_result;
static int64_t asked_begin, asked_end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool holds_data;
static unsigned n_held;

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!clock_stands)
		return __real_clock_gettime(id, ts);
	*ts = stands_at;
	return 0;
}

static int put_page(void *arg, struct ky_buf *to)
{
	ky_buf_puts(to, SECRET);
	return page_result;
}

static int put_data(void *arg, int64_t begin_ns, int64_t end_ns, struct ky_buf *to)
{
	pthread_mutex_lock(&lock);
	asked_begin = begin_ns;
	asked_end = end_ns;
	n_held++;
	pthread_cond_broadcast(&changed);
	while (holds_data)
		pthread_cond_wait(&changed, &lock);
	n_held--;
	pthread_mutex_unlock(&lock);
	ky_buf_puts(to, SECRET);
	return data_result;
}

static int put_state(void *arg, struct ky_buf *to)
{
	ky_buf_puts(to, "{}");
	return state_result;
}

static void hold_data(bool holds)
{
	pthread_mutex_lock(&lock);
	holds_data = holds;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void await_held(unsigned n)
{
	pthread_mutex_lock(&lock);
	while (n_held != n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/* --- requests --- */

static int connect_to_server(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Sends a request for a path that begins with the token. more: further header lines. */
static int begin_request(const char *method, const char *path, const char *more)
{
	char text[512];
	int fd = connect_to_server();

	snprintf(text, sizeof(text),
		"%s /%s/%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, token,
		path, host, more);
	send_text(fd, text);
	return fd;
}

/* Reads until the server ends the connection. Closes it. The caller frees the text. */
static char *read_reply(int fd)
{
	struct ky_buf b = {0};
	char part[4096];
	ssize_t n;

	ky_buf_puts(&b, "");
	while ((n = read(fd, part, sizeof(part))) > 0)
		ky_buf_append(&b, part, (size_t)n);
	assert_int_equal(b.error, 0);
	close(fd);
	return b.data;
}

/* Expects this status, 0: the end of the connection without a reply; and a text in the reply. */
static void expect_reply(int fd, int status, const char *text)
{
	char *reply = read_reply(fd);
	int got = 0;

	sscanf(reply, "HTTP/1.1 %d", &got);
	assert_int_equal(got, status);
	if (!strstr(reply, text))
		fail_msg("no '%s' in: %s", text, reply);
	if (status != 200)
		assert_null(strstr(reply, SECRET));
	free(reply);
}

static void expect(const char *path, int status, const char *text)
{
	expect_reply(begin_request("GET", path, ""), status, text);
}

static void expect_with(const char *more, int status)
{
	expect_reply(begin_request("GET", "", more), status, "");
}

/* A request without the token. */
static int begin_unknown(void)
{
	int fd = connect_to_server();

	send_text(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
	return fd;
}

/* --- tests --- */

static void test_page(void **state)
{
	static const char *const headers[] = {"Content-Type: text/html; charset=utf-8",
		"Cache-Control: no-store", "Referrer-Policy: no-referrer",
		"X-Content-Type-Options: nosniff", "X-Frame-Options: DENY",
		"Cross-Origin-Resource-Policy: same-origin"};
	char *reply;

	for (size_t i = 0; i < KY_ARRAY_SIZE(headers); i++)
		expect("", 200, headers[i]);
	expect("", 200, "\r\n\r\n" SECRET);
	reply = read_reply(begin_request("HEAD", "", ""));
	assert_non_null(strstr(reply, "200 OK"));
	assert_null(strstr(reply, SECRET));
	free(reply);
	expect_reply(begin_request("POST", "", "Content-Length: 0\r\n"), 405, "Allow: GET, HEAD");
	expect("other", 404, "no such page");
	page_result = -EIO;
	expect("", 500, strerror(EIO));
}

static void test_data(void **state)
{
	static const char *const bad[] = {"", "?begin=1", "?end=1", "?begin=2&end=1",
		"?begin=1x&end=2", "?begin=&end=2", "?begin=1&end=9223372036854775808"};
	char path[64];

	expect("data?begin=-5&end=9223372036854775807", 200, SECRET);
	assert_int_equal(asked_begin, -5);
	assert_int_equal(asked_end, INT64_MAX);
	expect("data?begin=7&end=7", 200, SECRET);
	for (size_t i = 0; i < KY_ARRAY_SIZE(bad); i++) {
		snprintf(path, sizeof(path), "data%s", bad[i]);
		expect(path, 400, "nanoseconds");
	}
	data_result = -ENODATA;
	expect("data?begin=1&end=2", 404, "no event");
	data_result = -ENOMEM;
	expect("data?begin=1&end=2", 500, strerror(ENOMEM));
}

/* So many requests for data are handled at once, however often there were others before. */
static void test_data_at_once(void **state)
{
	int fds[MAX_DATA];

	for (int turn = 0; turn < 2; turn++) {
		hold_data(true);
		for (unsigned i = 0; i < MAX_DATA; i++)
			fds[i] = begin_request("GET", "data?begin=1&end=2", "");
		await_held(MAX_DATA);
		expect("data?begin=1&end=2", 429, "at once");
		expect("", 200, SECRET);
		hold_data(false);
		for (unsigned i = 0; i < MAX_DATA; i++)
			expect_reply(fds[i], 200, SECRET);
	}
}

/* Reads the first event. Returns the connection. */
static int listen_to_events(void)
{
	int fd = begin_request("GET", "events", "");
	struct ky_buf b = {0};
	char part[512];
	ssize_t n;

	do {
		n = read(fd, part, sizeof(part));
		assert_true(n > 0);
		ky_buf_append(&b, part, (size_t)n);
		assert_int_equal(b.error, 0);
	} while (!strstr(b.data, "data: {}\n\n"));
	assert_non_null(strstr(b.data, "Content-Type: text/event-stream"));
	assert_non_null(strstr(b.data, "Cache-Control: no-store"));
	ky_buf_deinit(&b);
	return fd;
}

static int listener = -1; /* is connected when the server ends */

/* The server ends while pages listen: the end of the test waits for it. */
static void test_events(void **state)
{
	int fd = listen_to_events();

	state_result = -EIO;
	free(read_reply(fd)); /* until the server ends the connection */
	state_result = 0;
	close(listen_to_events());
	listener = listen_to_events();
}

/* Only the server's own pages read it: by its address or localhost, and of no other origin. */
static void test_origin(void **state)
{
	char own[128], other[128], saved[sizeof(host)];

	snprintf(own, sizeof(own), "Origin: http://%s\r\n", host);
	snprintf(other, sizeof(other), "Origin: http://%s0\r\n", host);
	expect_with(own, 200);
	expect_with(other, 403);
	expect_with("Origin: null\r\n", 403);
	expect_with("Sec-Fetch-Site: same-origin\r\n", 200);
	expect_with("Sec-Fetch-Site: none\r\n", 200);
	expect_with("Sec-Fetch-Site: cross-site\r\n", 403);
	memcpy(saved, host, sizeof(host));
	snprintf(host, sizeof(host), "localhost:1");
	expect("", 200, SECRET);
	snprintf(host, sizeof(host), "localhost.example.com");
	expect("", 403, "open the link");
	memcpy(host, saved, sizeof(host));
	token[0] ^= 1;
	expect("", 403, "open the link");
	token[0] ^= 1;
	token[31] ^= 1;
	expect("", 403, "open the link");
}

/* Requests with the token and others have limits of their own, which pass with time. */
static void test_rate(void **state)
{
	clock_gettime(CLOCK_MONOTONIC, &stands_at);
	clock_stands = true;
	for (int i = 0; i < BURST; i++)
		expect_reply(begin_unknown(), 403, "");
	expect_reply(begin_unknown(), 0, "");
	for (int i = 0; i < BURST; i++)
		expect("", 200, SECRET);
	expect("", 429, "too many");
	stands_at.tv_sec++;
	expect("", 200, SECRET);
	expect_reply(begin_unknown(), 403, "");
	clock_stands = false;
}

/* Reads a reply that does not end the connection. */
static void ask_again(int fd)
{
	char text[256], reply[4096] = "";
	size_t len = 0;
	ssize_t n;

	snprintf(text, sizeof(text), "GET /%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", token, host);
	send_text(fd, text);
	do {
		n = read(fd, reply + len, sizeof(reply) - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
	} while (!strstr(reply, SECRET));
}

/* Of a crowd, the oldest connection that has not shown the token makes room; others stay. */
static void test_crowd(void **state)
{
	int known = connect_to_server(), crowd[CROWDED];
	char byte;

	ask_again(known);
	for (int i = 0; i < CROWDED - 1; i++)
		crowd[i] = connect_to_server();
	expect("", 200, SECRET); /* ends the first: connections are accepted in their order */
	assert_int_equal(read(crowd[0], &byte, 1), 0);
	ask_again(crowd[1]);
	ask_again(known);
	close(known);
	for (int i = 0; i < CROWDED - 1; i++)
		close(crowd[i]);
}

static int start_server(void **state)
{
	static const struct ky_web_content content = {
		.page = put_page, .data = put_data, .state = put_state};
	unsigned port;

	page_result = data_result = state_result = 0;
	if (ky_web_start(&web, "127.0.0.1:0", &content) < 0 ||
		sscanf(ky_web_link(web), "http://%63[^/]/%63[^/]/", host, token) != 2 ||
		sscanf(strrchr(host, ':'), ":%u", &port) != 1)
		return -1;
	address = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return strlen(token) == 32 ? 0 : -1;
}

static int stop_server(void **state)
{
	ky_web_stop(web);
	listener = ky_close(listener);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_data, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_data_at_once, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_events, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_origin, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_rate, start_server, stop_server),
		cmocka_unit_test_setup_teardown(test_crowd, start_server, stop_server),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
