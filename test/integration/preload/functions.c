/* SPDX-License-Identifier: MIT */
/*
 * functions N: built with -finstrument-functions. Calls f(3), which calls itself down to f(0), N
 * times, and until a timer's signal handler has run MIN_SIGNALS times. The handler calls g().
 * Prints the addresses of f and of g, how often the handler ran, and how often f was called.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define MIN_SIGNALS 4

static volatile long n_signals, n_calls;

static __attribute__((noinline)) void g(void)
{
	n_signals++;
}

static void on_signal(int number)
{
	(void)number;
	g();
}

static __attribute__((noinline)) int f(int depth)
{
	n_calls++;
	return depth ? f(depth - 1) + 1 : 0;
}

int main(int argc, char **argv)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	long n = argc > 1 ? atol(argv[1]) : 1;

	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	for (long i = 0; i < n || n_signals < MIN_SIGNALS; i++)
		f(3);
	setitimer(ITIMER_REAL, &never, NULL);
	printf("%p %p %ld %ld\n", (void *)f, (void *)g, n_signals, n_calls);
	return 0;
}
