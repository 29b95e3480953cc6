/* SPDX-License-Identifier: MIT */
#include "preload/preload.h"

#include <dlfcn.h>
#include <errno.h>

static void *find_symbol(const struct preload_symbol *s)
{
	void *found = NULL;

#ifdef __GLIBC__
	if (s->version)
		found = dlvsym(RTLD_NEXT, s->name, s->version);
#endif
	return found ? found : dlsym(RTLD_NEXT, s->name);
}

static bool find_all(const struct preload_functions *f)
{
	bool all = true;

	for (size_t i = 0; i < f->n; i++) {
		const struct preload_symbol *s = &f->symbols[i];
		void *found = find_symbol(s);

		__atomic_store_n(s->function, found, __ATOMIC_RELAXED);
		all = all && (found || s->is_optional);
	}
	return all;
}

__attribute__((cold, noinline)) bool preload_find(struct preload_functions *f, bool *searching)
{
	int saved = errno;
	bool all;

	if (*searching)
		return false;
	*searching = true;
	all = find_all(f);
	if (all && f->prepare)
		f->prepare();
	/* Release: pairs with preload_have(). Threads that search at once find the same. */
	if (all)
		__atomic_store_n(&f->are_found, true, __ATOMIC_RELEASE);
	*searching = false;
	errno = saved;
	return all;
}
