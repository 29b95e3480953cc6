/* SPDX-License-Identifier: MIT */
/*
 * libkymo-pthread.so: calls of the mutex functions as events, with the address of the caller. The
 * tracer's own calls are excluded: they belong to the recording, not to the program.
 */
#include <link.h>
#include <pthread.h>

#include "preload/preload.h"

static bool found;
static PRELOAD_TLS bool finding;

static struct {
	int (*lock)(pthread_mutex_t *mutex);
	int (*trylock)(pthread_mutex_t *mutex);
	int (*unlock)(pthread_mutex_t *mutex);
} real;

static const struct preload_symbol symbols[] = {
	{"pthread_mutex_lock", (void **)&real.lock},
	{"pthread_mutex_trylock", (void **)&real.trylock},
	{"pthread_mutex_unlock", (void **)&real.unlock},
};

/*
 * The tracer's addresses. They are found in time: the tracer locks a mutex before it enables the
 * first event.
 */
static uintptr_t tracer_begin, tracer_size;

static int is_tracer_object(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	uintptr_t end = 0;

	if (!name || strcmp(name, "/libkymo.so.0") != 0)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	tracer_size = end;
	tracer_begin = info->dlpi_addr;
	return 1;
}

static __attribute__((cold, noinline)) bool ready_slow(void)
{
	if (finding)
		return false;
	finding = true;
	if (preload_find(symbols, sizeof(symbols) / sizeof(symbols[0]))) {
		dl_iterate_phdr(is_tracer_object, NULL);
		/* Release: pairs with ready(). */
		__atomic_store_n(&found, true, __ATOMIC_RELEASE);
	}
	finding = false;
	return found;
}

/*
 * Returns false while this thread searches for the real functions, which itself locks a mutex. That
 * happens while the process starts and has no other thread to exclude: the call then returns 0 and
 * does nothing.
 */
static inline bool ready(void)
{
	return preload_likely(__atomic_load_n(&found, __ATOMIC_ACQUIRE)) || ready_slow();
}

static inline bool by_tracer(const void *caller)
{
	return (uintptr_t)caller - tracer_begin < tracer_size;
}

PRELOAD_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	void *caller = __builtin_return_address(0);
	int status;

	if (!ready())
		return 0;
	if (by_tracer(caller))
		return real.lock(mutex);
	preload_event(pthread, mutex_lock_req, kymo_ptr(mutex, mutex), kymo_ptr(caller, caller));
	status = real.lock(mutex);
	preload_event(pthread, mutex_lock_acq, kymo_ptr(mutex, mutex), kymo_i32(status, status),
		kymo_ptr(caller, caller));
	return status;
}

PRELOAD_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	void *caller = __builtin_return_address(0);
	int status;

	if (!ready())
		return 0;
	if (by_tracer(caller))
		return real.trylock(mutex);
	status = real.trylock(mutex);
	preload_event(pthread, mutex_trylock, kymo_ptr(mutex, mutex), kymo_i32(status, status),
		kymo_ptr(caller, caller));
	return status;
}

/*
 * The event has the status, so it is recorded after the call: the next owner may be recorded
 * before.
 */
PRELOAD_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	void *caller = __builtin_return_address(0);
	int status;

	if (!ready())
		return 0;
	if (by_tracer(caller))
		return real.unlock(mutex);
	status = real.unlock(mutex);
	preload_event(pthread, mutex_unlock, kymo_ptr(mutex, mutex), kymo_i32(status, status),
		kymo_ptr(caller, caller));
	return status;
}
