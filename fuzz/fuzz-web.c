/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the web server of `kymo web`: connections that send any bytes, over the loopback. In the
 * input, 0x01 stands for the token, 0x02 for the server's address, and 0x03 divides what is sent at
 * once. Nobody may read the page without the token and the address.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "web/server.h"

#define SECRET	  "the page of the trace"
#define REPLY_MAX 65536
#define TIMEOUT_S 60

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ky_web *web;
static char token[64], host[64];
static struct sockaddr_in address;

static int put_secret(void *arg, struct ky_buf *to)
{
	(void)arg;
	ky_buf_puts(to, SECRET);
	return 0;
}

static int put_data(void *arg, int64_t begin_ns, int64_t end_ns, struct ky_buf *to)
{
	if (end_ns < begin_ns)
		abort();
	return begin_ns == 7 ? -ENODATA : put_secret(arg, to);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct ky_web_content content = {
		.page = put_secret, .data = put_data, .state = put_secret};
	unsigned port;

	(void)argc;
	(void)argv;
	signal(SIGPIPE, SIG_IGN);
	if (ky_web_start(&web, "127.0.0.1:0", &content) < 0 ||
		sscanf(ky_web_link(web), "http://%63[^/]/%63[^/]/", host, token) != 2 ||
		sscanf(strrchr(host, ':'), ":%u", &port) != 1)
		abort();
	address = (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return 0;
}

static int connect_to_server(void)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	const struct linger at_once = {.l_onoff = 1}; /* leaves no port in TIME_WAIT */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	return fd;
}

/* Sends the input; the server may have ended the connection. */
static void send_input(int fd, const uint8_t *data, size_t size)
{
	struct ky_buf b = {0};

	for (size_t i = 0; i <= size; i++) {
		if (i == size || data[i] == 3) {
			(void)!write(fd, b.data, b.len);
			b.len = 0;
		} else if (data[i] == 1 || data[i] == 2) {
			ky_buf_puts(&b, data[i] == 1 ? token : host);
		} else {
			ky_buf_append(&b, &data[i], 1);
		}
	}
	shutdown(fd, SHUT_WR);
	ky_buf_deinit(&b);
}

/* Reads until the end, or the first of the events, which have none. */
static void read_reply(int fd, struct ky_buf *reply)
{
	char part[4096];
	ssize_t n;

	while (reply->len < REPLY_MAX && (n = read(fd, part, sizeof(part))) > 0) {
		ky_buf_append(reply, part, (size_t)n);
		ky_buf_append(reply, "", 1); /* for strstr */
		reply->len--;
		if (strstr(reply->data, "text/event-stream") && strstr(reply->data, SECRET))
			break;
	}
}

/* The server's own names need no port. */
static bool has_host(const uint8_t *data, size_t size)
{
	return memchr(data, 2, size) || memmem(data, size, "localhost", 9) ||
	       memmem(data, size, "127.0.0.1", 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ky_buf reply = {0};
	int fd = connect_to_server();

	send_input(fd, data, size);
	read_reply(fd, &reply);
	if (reply.len && memmem(reply.data, reply.len, SECRET, strlen(SECRET)) &&
		(!memchr(data, 1, size) || !has_host(data, size)))
		abort();
	ky_buf_deinit(&reply);
	close(fd);
	return 0;
}
