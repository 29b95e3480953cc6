/* SPDX-License-Identifier: MIT */
#include "symbols/elfutils.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/util.h"

struct elfutils elfutils;
static bool is_loaded;

static const struct {
	const char *name;
	size_t offset;
} places[] = {
#define PLACE(name) {#name, offsetof(struct elfutils, name)},
	ELFUTILS_FUNCTIONS(PLACE)
#undef PLACE
};

/* libelf is a library that libdw needs, so its functions are found there. */
static void find_functions(void)
{
	void *lib = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);

	for (size_t i = 0; lib && i < KY_ARRAY_SIZE(places); i++) {
		void *found = dlsym(lib, places[i].name);

		if (!found)
			return;
		memcpy((char *)&elfutils + places[i].offset, &found, sizeof(found));
	}
	is_loaded = lib;
}

bool elfutils_load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_functions);
	return is_loaded;
}
