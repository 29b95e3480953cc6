/* SPDX-License-Identifier: MIT */
#include "preload/caller.h"

#if defined(__x86_64__) && defined(__LP64__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <unwind.h>

#define N_PLACES 64 /* of the library that allocate; it has about 20 */
#define UNUSABLE UINTPTR_MAX

uintptr_t preload_cxx_begin, preload_cxx_size;

static struct {
	_Unwind_Reason_Code (*backtrace)(_Unwind_Trace_Fn, void *);
	_Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
	_Unwind_Word (*get_cfa)(struct _Unwind_Context *);
} unwinder;

/* A place of the library: from the stack pointer there to the end of its frame. 0: not known. */
static struct {
	uintptr_t place, size;
} places[N_PLACES];

static __thread bool searching __attribute__((tls_model("initial-exec")));

struct search {
	uintptr_t place, cfa, size;
	bool was_there;
};

/* Of a frame the unwinder knows its code, and the end of the frame below: its stack pointer. */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *arg)
{
	uintptr_t ip = unwinder.get_ip(frame), cfa = unwinder.get_cfa(frame);
	struct search *s = arg;

	if (s->was_there) {
		/* Later calls read this word: it must be what the unwinder finds. */
		if (cfa > s->cfa && ((const uintptr_t *)cfa)[-1] == ip)
			s->size = cfa - s->cfa;
		return _URC_END_OF_STACK;
	}
	s->was_there = ip == s->place && cfa == s->cfa;
	return _URC_NO_REASON;
}

static uintptr_t find_frame_size(uintptr_t place, uintptr_t cfa)
{
	struct search s = {.place = place, .cfa = cfa, .size = UNUSABLE};

	if (searching)
		return UNUSABLE;
	searching = true;
	unwinder.backtrace(look_at_frame, &s);
	searching = false;
	return s.size;
}

/* Returns the size of the frame at a place, as far as it is above the stack pointer. */
static uintptr_t size_at(uintptr_t place, uintptr_t cfa)
{
	uintptr_t size, known;

	for (unsigned i = 0; i < N_PLACES; i++) {
		unsigned at = (unsigned)(place + i) % N_PLACES;

		known = __atomic_load_n(&places[at].place, __ATOMIC_RELAXED);
		if (!known)
			__atomic_compare_exchange_n(&places[at].place, &known, place, false,
				__ATOMIC_RELAXED, __ATOMIC_RELAXED);
		if (known && known != place)
			continue;
		size = __atomic_load_n(&places[at].size, __ATOMIC_RELAXED);
		if (!size && !searching) {
			size = find_frame_size(place, cfa);
			__atomic_store_n(&places[at].size, size, __ATOMIC_RELAXED);
		}
		return size;
	}
	return UNUSABLE;
}

const void *preload_caller_of_cxx(const void *caller, const char *cfa)
{
	uintptr_t size = size_at((uintptr_t)caller, (uintptr_t)cfa);

	return size && size != UNUSABLE ? ((const void *const *)(cfa + size))[-1] : caller;
}

static int find_cxx(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = strrchr(info->dlpi_name, '/');
	uintptr_t end = 0;

	if (!name || (strncmp(name, "/libstdc++.so", 13) != 0 && strncmp(name, "/libc++", 7) != 0))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
	preload_cxx_begin = info->dlpi_addr;
	__atomic_store_n(&preload_cxx_size, end, __ATOMIC_RELEASE);
	return 1;
}

/*
 * Older C libraries take a lock to find the tables of unwinders, which an allocation must not wait
 * for.
 */
static __attribute__((constructor)) void find_unwinder(void)
{
	*(void **)&unwinder.backtrace = dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
	*(void **)&unwinder.get_ip = dlsym(RTLD_DEFAULT, "_Unwind_GetIP");
	*(void **)&unwinder.get_cfa = dlsym(RTLD_DEFAULT, "_Unwind_GetCFA");
	if (unwinder.backtrace && unwinder.get_ip && unwinder.get_cfa &&
		dlsym(RTLD_DEFAULT, "_dl_find_object"))
		dl_iterate_phdr(find_cxx, NULL);
}

#endif
