/* SPDX-License-Identifier: MIT */
/*
 * Emits load:record, about 200,000 times a second, until it reads a line or an end of file on its
 * standard input or receives SIGTERM. Prints how many it has emitted.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include <kymo/tracepoint.h>

#define BURST 200

static volatile sig_atomic_t ending;

static void on_signal(int sig)
{
	(void)sig;
	ending = 1;
}

int main(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	uint64_t n = 0;

	signal(SIGTERM, on_signal);
	do {
		for (unsigned int i = 0; i < BURST; i++, n++)
			kymo_event(load, record, kymo_u64(n, n));
	} while (!ending && poll(&input, 1, 1) == 0);
	printf("%llu\n", (unsigned long long)n);
	return 0;
}
