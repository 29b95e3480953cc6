/* SPDX-License-Identifier: MIT */
/*
 * Records events in functions that are nested, inlined, and in libraries that are loaded at the
 * same address one after the other: calls [LIBRARY...]
 */
#include <dlfcn.h>
#include <stdio.h>

#include <kymo/tracepoint.h>

#define KEEP_FRAME __asm__ volatile("")

static __attribute__((noinline)) void leaf(int n)
{
	kymo_event(calls, leaf, kymo_i32(n, n));
	KEEP_FRAME;
}

static inline __attribute__((always_inline)) void inlined(int n)
{
	leaf(n + 1);
	kymo_event(calls, inlined, kymo_i32(n, n));
}

__attribute__((noinline)) void outer(int n);
__attribute__((noinline)) void outer(int n)
{
	inlined(n);
	KEEP_FRAME;
}

static void call_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*fn)(void) = library ? (void (*)(void))dlsym(library, "entry") : NULL;

	if (fn)
		fn();
	else
		fprintf(stderr, "%s\n", dlerror());
	if (library)
		dlclose(library);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++)
		outer(i);
	for (int i = 1; i < argc; i++)
		call_library(argv[i]);
	return 0;
}
