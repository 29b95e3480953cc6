/* SPDX-License-Identifier: MIT */
/*
 * spins MS [DEPTH]: on one CPU, an event, so many milliseconds of CPU time in inner() below
 * outer(), an event, and as much in a child. With DEPTH: spins until it gets a line, then calls
 * deep() so often, inner() below that, and spins until it gets another line.
 */
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define NOINLINE __attribute__((noinline))

static volatile unsigned long sink;

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void spin(long ms)
{
	for (long end = cpu_ms() + ms; cpu_ms() < end;)
		for (int i = 0; i < 100000; i++)
			sink++;
}

NOINLINE void inner(long ms);
NOINLINE void inner(long ms)
{
	spin(ms);
	sink++;
}

NOINLINE void outer(long ms);
NOINLINE void outer(long ms)
{
	inner(ms);
	sink++;
}

NOINLINE void in_child(long ms);
NOINLINE void in_child(long ms)
{
	spin(ms);
	sink++;
}

NOINLINE void margin(void);
NOINLINE void margin(void)
{
	spin(2);
	sink++;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
NOINLINE void deep(int depth, long ms);
NOINLINE void deep(int depth, long ms)
{
	if (depth)
		deep(depth - 1, ms);
	else
		inner(ms);
	sink++;
}

static void spin_until_line(void)
{
	struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
	char c;

	while (poll(&p, 1, 0) == 0)
		spin(1);
	if (read(STDIN_FILENO, &c, 1) < 0)
		exit(2);
}

static void stay(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	long ms = argc > 1 ? atol(argv[1]) : 1;
	int depth = argc > 2 ? atoi(argv[2]) : 0;
	pid_t child;

	stay();
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (depth) {
		spin_until_line();
		deep(depth, ms);
		puts("done");
		fflush(stdout);
		spin_until_line();
		return 0;
	}
	kymo_event(spins, begin, kymo_i32(n, 1));
	margin();
	outer(ms);
	margin();
	kymo_event(spins, end, kymo_i32(n, 1));
	child = fork();
	if (!child) {
		in_child(ms);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
