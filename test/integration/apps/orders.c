/* SPDX-License-Identifier: MIT */
/*
 * orders LIBRARY: prints "ready", executes the lines of stdin, and prints "ready" after each.
 * "load" loads the library, a copy of loads-provider.c. A number emits orders:program with that
 * number, and the library's events if it is loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/tracepoint.h>

static void (*provide)(int thread, int n);

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	provide = library ? (void (*)(int, int))dlsym(library, "provide") : NULL;
	if (!provide) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
}

static void emit(int n)
{
	kymo_event(orders, program, kymo_i32(n, n));
	if (provide)
		provide(0, n);
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc != 2)
		return 2;
	do {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		if (!strcmp(line, "load\n"))
			load(argv[1]);
		else
			emit(atoi(line));
	} while (1);
}
