/* SPDX-License-Identifier: MIT */
/*
 * libkymo-dl.so: libraries that are loaded and unloaded while the program runs, as events.
 *
 * dlopen() depends on its caller: it searches for a name without a slash in the directories of the
 * calling object's DT_RPATH or DT_RUNPATH, and $ORIGIN is the calling object's directory. The real
 * function sees this library as the caller. So this library first tries, by dlinfo(), the
 * directories that only the caller has, and the real function does the rest.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/preload.h"

static struct {
	void *(*dlopen)(const char *path, int flags);
	int (*dlclose)(void *handle);
#if HAVE_DLMOPEN
	void *(*dlmopen)(Lmid_t nsid, const char *path, int flags);
#endif
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(dlopen),
	PRELOAD_SYMBOL(dlclose),
#if HAVE_DLMOPEN
	PRELOAD_SYMBOL(dlmopen),
#endif
};

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

static bool has_dl_functions(void)
{
	return preload_have(&functions, &searching);
}

/* Returns the address at which the object is loaded; 0 if it is not. */
static uintptr_t base_of(void *handle)
{
	struct link_map *map;

	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map) < 0)
		return 0;
	return map->l_addr;
}

/* A call as the program made it. */
struct request {
	const char *path;
	int flags;
	const void *caller;
	bool in_namespace; /* dlmopen */
	long nsid;
};

static void *open_path(const struct request *q, const char *path, int flags)
{
#if HAVE_DLMOPEN
	if (q->in_namespace)
		return real.dlmopen(q->nsid, path, flags);
#endif
	return real.dlopen(path, flags);
}

#ifdef __GLIBC__
/* dlinfo's result is a structure with the data that it points to behind it. */
union search {
	Dl_serinfo info;
	char room[16384];
};

static struct link_map *object_at(const void *address)
{
	struct link_map *map = NULL;
	Dl_info info;

	return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static bool search_path_of(const void *address, union search *s)
{
	struct link_map *map = object_at(address);

	return map && dlinfo(map, RTLD_DI_SERINFOSIZE, &s->info) == 0 &&
	       s->info.dls_size <= sizeof(*s) && dlinfo(map, RTLD_DI_SERINFO, &s->info) == 0;
}

static bool searches(const union search *s, const char *dir)
{
	for (unsigned i = 0; i < s->info.dls_cnt; i++)
		if (!strcmp(s->info.dls_serpath[i].dls_name, dir))
			return true;
	return false;
}

/*
 * Returns the number of directories, from the first, up to the last one that the caller searches
 * and this library does not.
 */
static unsigned count_extra(const void *caller, union search *its)
{
	union search ours;
	unsigned n;

	if (!search_path_of(caller, its) || !search_path_of(symbols, &ours))
		return 0;
	n = its->info.dls_cnt;
	while (n && searches(&ours, its->info.dls_serpath[n - 1].dls_name))
		n--;
	return n;
}

/* Opens a bare name: a library that is already loaded, else one in the caller's directories. */
static void *search_for_caller(const struct request *q)
{
	union search its;
	char path[4096];
	unsigned n = count_extra(q->caller, &its);
	void *handle = NULL;

	if (n && !(q->in_namespace && q->nsid == LM_ID_NEWLM))
		handle = open_path(q, q->path, q->flags | RTLD_NOLOAD);
	if (q->flags & RTLD_NOLOAD)
		return handle;
	for (unsigned i = 0; i < n && !handle; i++) {
		int len = snprintf(
			path, sizeof(path), "%s/%s", its.info.dls_serpath[i].dls_name, q->path);

		if (len > 0 && (size_t)len < sizeof(path) && access(path, R_OK) == 0)
			handle = open_path(q, path, q->flags);
	}
	return handle;
}

/* Opens $ORIGIN/...: in the directory of the caller. */
static void *open_at_origin(const struct request *q, const char *rest)
{
	struct link_map *map = object_at(q->caller);
	char origin[4096], path[8192];

	if (!map || dlinfo(map, RTLD_DI_ORIGIN, origin) < 0)
		return NULL;
	snprintf(path, sizeof(path), "%s%s", origin, rest);
	return open_path(q, path, q->flags);
}

static void *open_for_caller(const struct request *q)
{
	static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};

	if (!q->path || !*q->path)
		return NULL;
	for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++)
		if (!strncmp(q->path, origins[i], strlen(origins[i])))
			return open_at_origin(q, q->path + strlen(origins[i]));
	return strchr(q->path, '/') ? NULL : search_for_caller(q);
}
#else
/* Does not depend on the caller. */
static void *open_for_caller(const struct request *q)
{
	return NULL;
}
#endif

static void *open_object(const struct request *q)
{
	void *handle;

	if (!has_dl_functions())
		return NULL;
	handle = open_for_caller(q);
	return handle ? handle : open_path(q, q->path, q->flags);
}

PRELOAD_EXPORT void *dlopen(const char *path, int flags)
{
	const struct request q = {
		.path = path, .flags = flags, .caller = __builtin_return_address(0)};
	void *handle = open_object(&q);

	preload_event(dl, dlopen, kymo_string(path, path), kymo_x32(flags, (uint32_t)flags),
		kymo_ptr(handle, handle), kymo_ptr(baddr, base_of(handle)));
	return handle;
}

#if HAVE_DLMOPEN
PRELOAD_EXPORT void *dlmopen(Lmid_t nsid, const char *path, int flags)
{
	const struct request q = {.path = path,
		.flags = flags,
		.caller = __builtin_return_address(0),
		.in_namespace = true,
		.nsid = nsid};
	void *handle = open_object(&q);

	preload_event(dl, dlmopen, kymo_i64(nsid, nsid), kymo_string(path, path),
		kymo_x32(flags, (uint32_t)flags), kymo_ptr(handle, handle),
		kymo_ptr(baddr, base_of(handle)));
	return handle;
}
#endif

PRELOAD_EXPORT int dlclose(void *handle)
{
	uintptr_t baddr = kymo_event_enabled(dl, dlclose) ? base_of(handle) : 0;
	int result = has_dl_functions() ? real.dlclose(handle) : -1;

	preload_event(dl, dlclose, kymo_ptr(handle, handle), kymo_ptr(baddr, baddr),
		kymo_i32(result, result));
	return result;
}
