/* SPDX-License-Identifier: MIT */
/*
 * A request on its way through several hosts: each service serves it, and calls the next one. The
 * last one looks something up, and is slow once in a while. 'make demo-fleet' finds out where a
 * slow request spent its time.
 *
 *	cc -O2 -o relay relay.c $(pkg-config --cflags --libs kymo)
 *
 *	relay ADDRESS [NEXT-ADDRESS NEXT-PORT]	a service; prints its port
 *	relay ask ADDRESS PORT N		asks N times; prints the slowest request's
 *						W3C trace id, and its milliseconds
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <kymo/span.h>

#define SLOW_ONE   40 /* of so many requests */
#define SLOW_US	   80000
#define LOOK_UP_US 200

/* The message from one service to the next. */
struct request {
	uint64_t number;
	uint8_t trace[16], span[8]; /* span: of the caller */
};

static void __attribute__((noreturn)) fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address_of(const char *text, const char *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		fail(text);
	return a;
}

static int call(const char *address, const char *port)
{
	const struct sockaddr_in a = address_of(address, port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		fail(address);
	return fd;
}

/* Returns 0 when the other side has closed. */
static int get(int fd, void *to, size_t n)
{
	return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static void put(int fd, const void *data, size_t n)
{
	if (send(fd, data, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("send");
}

/* The request as it goes on: from a new span. */
static void ask(int next, const struct request *from, uint8_t span[8])
{
	struct request r = *from;
	uint64_t flow;
	char answer;

	memcpy(r.span, span, sizeof(r.span));
	memcpy(&flow, span, sizeof(flow));
	kymo_flow_begin(relay, call, flow);
	put(next, &r, sizeof(r));
	if (!get(next, &answer, 1))
		fail("next service");
}

static void look_up(uint64_t number)
{
	kymo_span(relay, look_up, kymo_u64(number, number));
	usleep(number % SLOW_ONE == SLOW_ONE - 3 ? SLOW_US : LOOK_UP_US);
}

static void serve(const struct request *r, int next)
{
	uint8_t span[8];
	uint64_t flow;

	memcpy(&flow, r->span, sizeof(flow));
	if (getrandom(span, sizeof(span), 0) != (ssize_t)sizeof(span))
		fail("getrandom");
	kymo_span(relay, serve, kymo_w3c_trace_id(r->trace), kymo_w3c_span_id(span),
		kymo_w3c_parent_id(r->span), kymo_u64(number, r->number));
	kymo_flow_end(relay, call, flow);
	if (next >= 0)
		ask(next, r, span);
	else
		look_up(r->number);
}

static void run_service(const char *address, int next)
{
	struct sockaddr_in a = address_of(address, "0");
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0), client;
	struct request r;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&a, n) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		fail(address);
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	client = accept(fd, NULL, NULL);
	while (get(client, &r, sizeof(r))) {
		serve(&r, next);
		put(client, "", 1);
	}
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void run_client(int service, uint64_t n)
{
	uint64_t slowest_us = 0;
	struct request slowest = {0};

	for (uint64_t i = 0; i < n; i++) {
		struct request r = {.number = i};
		const uint64_t begin = now_us();
		char answer;

		if (getrandom(r.trace, sizeof(r.trace), 0) < 0 ||
			getrandom(r.span, sizeof(r.span), 0) < 0)
			fail("getrandom");
		put(service, &r, sizeof(r));
		if (!get(service, &answer, 1))
			fail("first service");
		if (now_us() - begin > slowest_us) {
			slowest_us = now_us() - begin;
			slowest = r;
		}
	}
	for (size_t i = 0; i < sizeof(slowest.trace); i++)
		printf("%02x", slowest.trace[i]);
	printf(" %lu\n", (unsigned long)(slowest_us / 1000));
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "ask"))
		run_client(call(argv[2], argv[3]), strtoull(argv[4], NULL, 10));
	else if (argc == 2 || argc == 4)
		run_service(argv[1], argc == 4 ? call(argv[2], argv[3]) : -1);
	else
		return 2;
	return 0;
}
