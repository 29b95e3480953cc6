/* SPDX-License-Identifier: MIT */
/*
 * loader N PATH: N times loads PATH and unloads it again, then tries to load a file that does
 * not exist. Prints the address at which PATH was loaded the last time.
 * With -DLIBRARY: a library; its open_by_name() loads a library by name, and its say() prints which
 * library it is. With -DPROGRAM=NAME: a program that calls open_by_name().
 */
#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(LIBRARY)
void *open_by_name(const char *name);
const char *say(void);

void *open_by_name(const char *name)
{
	return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

const char *say(void)
{
	return LIBRARY;
}
#elif defined(CALLER)
void *open_by_name(const char *name);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *handle = open_by_name(argv[i]);
		const char *(*say)(void) = handle ? (const char *(*)(void))dlsym(handle, "say")
						  : NULL;

		printf("%s: %s\n", argv[i], say ? say() : handle ? "?" : dlerror());
	}
	return 0;
}
#else
int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[1]) : 0;
	ElfW(Addr) base = 0;

	for (int i = 0; i < n; i++) {
		struct link_map *map = dlopen(argv[2], RTLD_LAZY);

		assert(map && !dlerror());
		base = map->l_addr;
		assert(dlclose(map) == 0);
	}
	assert(!dlopen("/nowhere/to/be/found.so", RTLD_NOW));
	assert(dlerror());
	assert(dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW));
	assert(dlopen(NULL, RTLD_NOW));
	printf("%#lx\n", (unsigned long)base);
	return 0;
}
#endif
