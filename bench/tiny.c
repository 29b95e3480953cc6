/* SPDX-License-Identifier: MIT */
/*
 * The smallest program with a tracepoint: it shows what tracing adds to the start of a program, and
 * to a program that runs. Compiled once for each measured system, and without any. With an argument
 * it reports that it runs, by a byte on stdout, and stays.
 */
#include <unistd.h>

#if defined(BENCH_KYMO)
#include "system-kymo.h"
#elif defined(BENCH_LTTNG)
#include "system-lttng.h"
#else
static void record_int(int i)
{
	(void)i;
}
#endif

int main(int argc, char **argv)
{
	(void)argv;
	record_int(argc);
	if (argc > 1) {
		if (write(STDOUT_FILENO, "r", 1) != 1)
			return 1;
		for (;;)
			pause();
	}
	return 0;
}
