/* SPDX-License-Identifier: MIT */
/*
 * The place of a program that called a function. If the caller is the shared library of C++, as in
 * `new`, it is the place that called that.
 *
 * Programs have no frame pointers. But the distance between the stack frames of a function and of
 * its caller is always the same at one place of the library, so the unwinder has to find it once.
 */
#ifndef PRELOAD_CALLER_H
#define PRELOAD_CALLER_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__LP64__) && defined(__GLIBC__)

extern __attribute__((visibility("hidden"))) uintptr_t preload_cxx_begin, preload_cxx_size;

/* cfa: the stack pointer of the caller. */
__attribute__((visibility("hidden"))) const void *preload_caller_of_cxx(
	const void *caller, const char *cfa);

static inline const void *preload_caller(const void *caller, const void *cfa)
{
	if (__builtin_expect((uintptr_t)caller - preload_cxx_begin >= preload_cxx_size, 1))
		return caller;
	return preload_caller_of_cxx(caller, cfa);
}

#define PRELOAD_CALLER() preload_caller(__builtin_return_address(0), __builtin_dwarf_cfa())

#else
#define PRELOAD_CALLER() __builtin_return_address(0)
#endif

#endif
