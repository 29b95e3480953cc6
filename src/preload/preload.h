/* SPDX-License-Identifier: MIT */
/*
 * The common part of the preload libraries. Each library stands between a program that does not
 * know of it and some functions of the C library. It calls the real function, which is the next in
 * the order of symbol search (so that a program's own allocator stays in use), and records an
 * event.
 *
 * The wrappers must not cause an error that would not occur without them. They keep the real
 * function's result and errno, take no lock and allocate nothing. They hold no state during the
 * real call, so a signal handler may jump out of it or call again. Recording an event calls none of
 * the wrapped functions, so there is no recursion.
 */
#ifndef PRELOAD_PRELOAD_H
#define PRELOAD_PRELOAD_H

#include <stdbool.h>

#include <kymo/span.h>
#include <kymo/tracepoint.h>

#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define PRELOAD_TLS    __thread __attribute__((tls_model("initial-exec")))

#define preload_likely(x) __builtin_expect(!!(x), 1)

/*
 * Not 0 in the child of a vfork(), until it executes another program. The child borrows its
 * parent's thread, but the kernel does not restart its restartable sequences: it must not record.
 * All preload libraries of a process share one such variable, that of the first library, whose
 * vfork() sets it. On systems without per-CPU rings it is not needed: there the child is like
 * another signal handler.
 */
#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
extern PRELOAD_TLS int kymo_vforked;
#else
#define kymo_vforked 0
#endif

#define preload_event(...)                                                                         \
	do {                                                                                       \
		if (preload_likely(!kymo_vforked))                                                 \
			kymo_event(__VA_ARGS__);                                                   \
	} while (0)

/* A span of the thread, from before a call that may wait to after it. */
#define preload_span_begin(...)                                                                    \
	do {                                                                                       \
		if (preload_likely(!kymo_vforked))                                                 \
			kymo_span_begin(__VA_ARGS__);                                              \
	} while (0)
#define preload_span_end(...)                                                                      \
	do {                                                                                       \
		if (preload_likely(!kymo_vforked))                                                 \
			kymo_span_end(__VA_ARGS__);                                                \
	} while (0)

/*
 * Informs the tracer that a call may have changed contexts. Called with any result, which it
 * returns: parts of a failed call may have been done.
 */
static inline int preload_changed(int result)
{
	kymo_contexts_invalidate();
	return result;
}

/* A function to find, and the pointer to it. */
struct preload_symbol {
	const char *name;
	void **function;
	const char *version; /* preferred to the default version; NULL: none is */
	bool is_optional;    /* an old C library may lack it: its pointer is NULL then */
};

/* The entry of a function whose pointer is a member of `real`. */
#define PRELOAD_SYMBOL(symbol, ...)                                                                \
	{                                                                                          \
		.name = #symbol, .function = (void **)&real.symbol, ##__VA_ARGS__                  \
	}

/* The real functions of some wrappers: those that come next after this library's. */
struct preload_functions {
	const struct preload_symbol *symbols;
	size_t n;
	void (*prepare)(void); /* called before the first of them is used; or NULL */
	bool are_found;
};

#define PRELOAD_FUNCTIONS(list)                                                                    \
	{                                                                                          \
		.symbols = (list), .n = sizeof(list) / sizeof((list)[0])                           \
	}

/* preload_have(), if they were not found yet. */
bool preload_find(struct preload_functions *functions, bool *searching);

/*
 * Returns true if the functions are found, and finds them first: a wrapper may be called before any
 * constructor. Returns false if the C library lacks one of them, and while this thread searches for
 * them, because the search may call wrappers. searching: a variable of the thread for these
 * functions. Preserves errno.
 */
static inline bool preload_have(struct preload_functions *functions, bool *searching)
{
	/* Acquire: pairs with preload_find(). */
	return preload_likely(__atomic_load_n(&functions->are_found, __ATOMIC_ACQUIRE)) ||
	       preload_find(functions, searching);
}

/* syscall(), with as many arguments as there can be. */
typedef long preload_syscall_fn(long number, long a, long b, long c, long d, long e, long f);

/* The two halves of the wrapper of syscall(): system-calls.c. */
__attribute__((__visibility__("hidden"))) preload_syscall_fn *preload_syscall_next(
	long number, long a, long b);
__attribute__((__visibility__("hidden"))) long preload_syscall_here(
	long number, long a, long b, long c, long d, long e, long f, const void *caller);

/*
 * Waits for a futex: the system call of this number with these arguments, which the caller has made
 * by syscall(). Only libkymo-pthread.so has this function. In the other libraries it is NULL.
 */
__attribute__((__weak__, __visibility__("hidden"))) long preload_futex_wait(
	preload_syscall_fn *real, const void *caller, long futex, long operation, long c, long d,
	long e, long f);

#endif
