/* SPDX-License-Identifier: MIT */
/*
 * What the preload libraries share. Each stands between a program that knows nothing of it and a
 * few functions of the C library: it calls the real one, the next in the order of symbol search
 * (so that a program's own allocator stays in use), and records an event.
 *
 * Nothing may go wrong here that would not go wrong without us. The wrappers keep the real
 * function's result and errno, take no lock and allocate nothing. They hold no state over the real
 * call: there is none to be left wrong when a signal handler jumps out of it, or calls again. An
 * event recorded calls none of the functions that are wrapped, so nothing recurses.
 */
#ifndef PRELOAD_PRELOAD_H
#define PRELOAD_PRELOAD_H

#include <stdbool.h>

#include <kymo/tracepoint.h>

#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define PRELOAD_TLS    __thread __attribute__((tls_model("initial-exec")))

#define preload_likely(x) __builtin_expect(!!(x), 1)

/*
 * Not 0 in the child of a vfork(), until it is another program. It borrows its parent's thread, but
 * the kernel does not restart its restartable sequences: it must not record. All preload libraries
 * of a process have one such variable in common, that of the first, whose vfork() sets it. Where
 * per-CPU rings do not exist nobody need know: there the child is like one more signal handler.
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

/* A function to be found, and the pointer to it. */
struct preload_symbol {
	const char *name;
	void **function;
};

/* Finds the functions that come next after this library's. False when one of n is missing. Keeps
 * errno. */
bool preload_find(const struct preload_symbol *symbols, size_t n);

#endif
