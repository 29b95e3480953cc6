/* SPDX-License-Identifier: MIT */
/*
 * libkymo-libc.so: calls of the memory functions as events. Everything in the process calls them,
 * from the dynamic linker before any constructor to the last destructor.
 *
 * dlsym(), which finds the real functions, may itself allocate. The thread inside it gets its
 * memory from a small arena, which recognizes its own blocks and never takes one back.
 *
 * An allocation is recorded after the call and a release before it: so an address that is allocated
 * again appears later than the event that released it.
 */
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "preload/caller.h"
#include "preload/preload.h"

#define ARENA_SIZE  16384u
#define ARENA_ALIGN 16u

static char arena[ARENA_SIZE] __attribute__((aligned(4096)));
static size_t arena_used;

static struct {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t nmemb, size_t size);
	void *(*realloc)(void *ptr, size_t size);
	void (*free)(void *ptr);
	int (*posix_memalign)(void **ret_ptr, size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
#if HAVE_PVALLOC
	void *(*pvalloc)(size_t size);
#endif
} real;

static const struct preload_symbol symbols[] = {
	PRELOAD_SYMBOL(malloc),
	PRELOAD_SYMBOL(calloc),
	PRELOAD_SYMBOL(realloc),
	PRELOAD_SYMBOL(free),
	PRELOAD_SYMBOL(posix_memalign),
	PRELOAD_SYMBOL(memalign),
	PRELOAD_SYMBOL(aligned_alloc),
	PRELOAD_SYMBOL(valloc),
#if HAVE_PVALLOC
	PRELOAD_SYMBOL(pvalloc),
#endif
};

static struct preload_functions functions = PRELOAD_FUNCTIONS(symbols);
static PRELOAD_TLS bool searching;

/* Returns false while this thread searches for the real functions: use the arena. */
static inline bool has_allocator(void)
{
	return preload_have(&functions, &searching);
}

static bool in_arena(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)arena < ARENA_SIZE;
}

/* Allocates zeroed memory. alignment is a power of two, at most the arena's. */
static void *arena_alloc(size_t alignment, size_t size)
{
	size_t align = alignment > ARENA_ALIGN ? alignment : ARENA_ALIGN;
	size_t used = __atomic_load_n(&arena_used, __ATOMIC_RELAXED), begin;

	do {
		begin = (used + align - 1) & ~(align - 1);
		if (begin > ARENA_SIZE || size > ARENA_SIZE - begin) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n(
		&arena_used, &used, begin + size, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return arena + begin;
}

/* Moves a block out of the arena. Its size is not known: bytes behind it are copied as well. */
static void *arena_move(const char *ptr, void *to, size_t size)
{
	size_t rest = (size_t)(arena + ARENA_SIZE - ptr);

	if (to)
		memcpy(to, ptr, size < rest ? size : rest);
	return to;
}

static void *real_realloc(void *in_ptr, size_t size)
{
	bool is_ready = has_allocator();

	if (in_arena(in_ptr))
		return arena_move(in_ptr,
			is_ready ? real.malloc(size) : arena_alloc(ARENA_ALIGN, size), size);
	if (is_ready)
		return real.realloc(in_ptr, size);
	if (!in_ptr)
		return arena_alloc(ARENA_ALIGN, size);
	errno = ENOMEM;
	return NULL;
}

/* Of leak sanitizers: the block does not leak. */
extern void __lsan_ignore_object(const void *ptr) __attribute__((weak));

/*
 * Leak sanitizers know that the dynamic linker keeps its blocks, and recognize them by the caller
 * of malloc(), which is this library now.
 */
static __attribute__((cold, noinline)) void keep_for_linker(const void *ptr, uintptr_t caller)
{
	const ElfW(Ehdr) *linker = (const ElfW(Ehdr) *)getauxval(AT_BASE);
	const ElfW(Phdr) * p;

	if (!linker || !ptr || in_arena(ptr))
		return;
	p = (const ElfW(Phdr) *)((const char *)linker + linker->e_phoff);
	for (int i = 0; i < linker->e_phnum; i++) {
		if (p[i].p_type == PT_LOAD &&
			caller - (uintptr_t)linker - p[i].p_vaddr < p[i].p_memsz)
			__lsan_ignore_object(ptr);
	}
}

#define KEEP_FOR_LINKER(ptr)                                                                       \
	do {                                                                                       \
		if (!preload_likely(!__lsan_ignore_object))                                        \
			keep_for_linker(ptr, (uintptr_t)__builtin_return_address(0));              \
	} while (0)

/* The place of the program's call. */
#define CALLER kymo_ptr(caller, PRELOAD_CALLER())

PRELOAD_EXPORT void *malloc(size_t size)
{
	void *ptr;

	if (!has_allocator())
		return arena_alloc(ARENA_ALIGN, size);
	ptr = real.malloc(size);
	KEEP_FOR_LINKER(ptr);
	preload_event(libc, malloc, kymo_u64(size, size), kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

PRELOAD_EXPORT void *calloc(size_t nmemb, size_t size)
{
	size_t bytes;
	void *ptr;

	if (!has_allocator())
		return arena_alloc(ARENA_ALIGN,
			__builtin_mul_overflow(nmemb, size, &bytes) ? SIZE_MAX : bytes);
	ptr = real.calloc(nmemb, size);
	KEEP_FOR_LINKER(ptr);
	preload_event(libc, calloc, kymo_u64(nmemb, nmemb), kymo_u64(size, size),
		kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

PRELOAD_EXPORT void *realloc(void *in_ptr, size_t size)
{
	void *ptr = real_realloc(in_ptr, size);

	KEEP_FOR_LINKER(ptr);
	preload_event(libc, realloc, kymo_ptr(in_ptr, in_ptr), kymo_u64(size, size),
		kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

/* The C library's version would call realloc by its name, and would be recorded twice. */
PRELOAD_EXPORT void *reallocarray(void *in_ptr, size_t nmemb, size_t size)
{
	void *ptr = NULL;
	size_t bytes;

	if (__builtin_mul_overflow(nmemb, size, &bytes))
		errno = ENOMEM;
	else
		ptr = real_realloc(in_ptr, bytes);
	preload_event(libc, reallocarray, kymo_ptr(in_ptr, in_ptr), kymo_u64(nmemb, nmemb),
		kymo_u64(size, size), kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

PRELOAD_EXPORT void free(void *ptr)
{
	if (!has_allocator() || in_arena(ptr))
		return;
	preload_event(libc, free, kymo_ptr(ptr, ptr));
	real.free(ptr);
}

PRELOAD_EXPORT int posix_memalign(void **ret_ptr, size_t alignment, size_t size)
{
	int result;

	if (!has_allocator()) {
		*ret_ptr = arena_alloc(alignment, size);
		return *ret_ptr ? 0 : ENOMEM;
	}
	result = real.posix_memalign(ret_ptr, alignment, size);
	preload_event(libc, posix_memalign, kymo_ptr(out_ptr, result ? NULL : *ret_ptr),
		kymo_u64(alignment, alignment), kymo_u64(size, size), kymo_i32(result, result),
		CALLER);
	return result;
}

PRELOAD_EXPORT void *memalign(size_t alignment, size_t size)
{
	void *ptr;

	if (!has_allocator())
		return arena_alloc(alignment, size);
	ptr = real.memalign(alignment, size);
	preload_event(libc, memalign, kymo_u64(alignment, alignment), kymo_u64(size, size),
		kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

PRELOAD_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	void *ptr;

	if (!has_allocator())
		return arena_alloc(alignment, size);
	ptr = real.aligned_alloc(alignment, size);
	preload_event(libc, aligned_alloc, kymo_u64(alignment, alignment), kymo_u64(size, size),
		kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

PRELOAD_EXPORT void *valloc(size_t size)
{
	void *ptr;

	if (!has_allocator())
		return arena_alloc(4096, size);
	ptr = real.valloc(size);
	preload_event(libc, valloc, kymo_u64(size, size), kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}

#if HAVE_PVALLOC
PRELOAD_EXPORT void *pvalloc(size_t size)
{
	void *ptr;

	if (!has_allocator())
		return arena_alloc(4096, (size + 4095) & ~(size_t)4095);
	ptr = real.pvalloc(size);
	preload_event(libc, pvalloc, kymo_u64(size, size), kymo_ptr(ptr, ptr), CALLER);
	return ptr;
}
#endif
