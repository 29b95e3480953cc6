/* SPDX-License-Identifier: MIT */
/*
 * One event at a time with the means that programmers have without a tracer, for bench.py:
 *
 *   habit printf FILE N     writes a line with the time, by stdio
 *   habit call - N          calls mark(), which a tool records: a uprobe, uftrace, or no tool
 *
 * Prints the CPU time of each event in ns, from the thread's own clock.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define UNTRACED __attribute__((no_instrument_function))

static volatile int32_t sink;

void mark(int32_t a);

__attribute__((noinline, noclone)) void mark(int32_t a)
{
	sink = a;
}

UNTRACED static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

UNTRACED static void print_line(FILE *to, int32_t a)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(to, "%lld.%09ld a=%d\n", (long long)ts.tv_sec, ts.tv_nsec, a);
}

UNTRACED int main(int argc, char **argv)
{
	uint64_t n = argc == 4 ? strtoull(argv[3], NULL, 10) : 0, begin;
	FILE *to = NULL;

	if (!n || (strcmp(argv[1], "printf") && strcmp(argv[1], "call"))) {
		fputs("usage: habit printf|call FILE N\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "printf") && !(to = fopen(argv[2], "w"))) {
		perror(argv[2]);
		return 1;
	}
	begin = cpu_ns();
	for (uint64_t i = 0; i < n; i++) {
		if (to)
			print_line(to, (int32_t)i);
		else
			mark((int32_t)i);
	}
	printf("%.2f\n", (double)(cpu_ns() - begin) / (double)n);
	return to && fclose(to) ? 1 : 0;
}
