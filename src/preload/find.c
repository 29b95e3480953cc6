/* SPDX-License-Identifier: MIT */
#include "preload/preload.h"

#include <dlfcn.h>
#include <errno.h>

bool preload_find(const struct preload_symbol *symbols, size_t n)
{
	int saved = errno;
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		void *found = dlsym(RTLD_NEXT, symbols[i].name);

		__atomic_store_n(symbols[i].function, found, __ATOMIC_RELAXED);
		all = all && found;
	}
	errno = saved;
	return all;
}
