/* SPDX-License-Identifier: MIT */
/*
 * A dlsym() that allocates memory, as that of some C libraries does. It comes after the preload
 * library in the search order. With -DTAIL: a library whose destructor allocates.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#ifdef TAIL
static void *volatile sink;

static __attribute__((destructor)) void at_end(void)
{
	sink = malloc(72001);
	free(sink);
}

void tail(void);
void tail(void)
{
}
#else
void *dlsym(void *restrict handle, const char *restrict name)
{
	void *(*real)(void *, const char *) = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	char *p = calloc(3, 7), *aligned = NULL;
	void *found;

	for (int i = 0; i < 21; i++)
		if (!p || p[i])
			abort();
	strcpy(p, "held by the arena");
	if (posix_memalign((void **)&aligned, 64, 64) || (size_t)aligned % 64)
		abort();
	free(malloc(11));
	p = realloc(p, 100);
	free(aligned);
	found = real(handle, name);
	if (!p || strcmp(p, "held by the arena"))
		abort();
	free(realloc(NULL, 5));
	free(p);
	return found;
}
#endif
