/* SPDX-License-Identifier: MIT */
/*
 * The smallest program with a tracepoint: it shows what tracing adds to the start of a program, and
 * to a program that runs. Compiled once for each measured system, once for the least that a tracer
 * does (least.c), and without any. With an argument it reports that it runs, by a byte on stdout,
 * and stays.
 */
#include <unistd.h>

#if defined(BENCH_KYMO)
#include "system-kymo.h"
#elif defined(BENCH_LTTNG)
#include "system-lttng.h"
#else
#if defined(BENCH_LEAST)
#include <dlfcn.h>

static __attribute__((constructor)) void load(void)
{
	void *library = dlopen("libleast.so", RTLD_NOW);
	void *address = library ? dlsym(library, "least_start") : NULL;

	if (!address)
		_exit(1);
	((void (*)(void))address)();
}
#endif
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
