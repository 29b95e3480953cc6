/* SPDX-License-Identifier: MIT */
/*
 * Small helpers used everywhere. Safe inside any process: no state, no allocation, no logging.
 */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system-call.h"

#define KY_ARRAY_SIZE(a)		   (sizeof(a) / sizeof((a)[0]))
#define KY_MIN(a, b)			   ((a) < (b) ? (a) : (b))
#define KY_MAX(a, b)			   ((a) > (b) ? (a) : (b))
#define ky_likely(x)			   __builtin_expect(!!(x), 1)
#define ky_unlikely(x)			   __builtin_expect(!!(x), 0)
#define ky_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define KY_PRINTF(fmt, args)		   __attribute__((format(printf, fmt, args)))

/*
 * TLS model of thread variables in libkymo, which is loaded late. glibc then has little room for
 * initial-exec data, but may allocate on the first use of any other model. musl has no such room,
 * and makes data of the other models when it loads the library.
 */
#ifdef __GLIBC__
#define KY_THREAD_TLS __attribute__((tls_model("initial-exec")))
#else
#define KY_THREAD_TLS
#endif

/*
 * For small variables of libkymo that are written in each program: they are on the page of those
 * that have a value from the start, so a program writes to few pages. Together they fit one page.
 */
#define KY_WRITTEN_EARLY __attribute__((section(".data.early")))

/*
 * Returns a variable of the environment. An empty variable counts as absent. A program that has
 * more rights than its caller has no variables.
 */
static inline const char *ky_env(const char *name)
{
	const char *s = secure_getenv(name);

	return s && *s ? s : NULL;
}

/* Returns true if a switch in the environment is set, and is neither empty nor 0. */
static inline bool ky_switch_is_on(const char *name)
{
	const char *s = ky_env(name);

	return s && strcmp(s, "0");
}

/*
 * Cleanup attributes, for daemons and command line only (style: never together with goto in a
 * function).
 */
#define _cleanup_free_	 __attribute__((cleanup(ky_cleanup_free)))
#define _cleanup_close_	 __attribute__((cleanup(ky_cleanup_close)))
#define _cleanup_fclose_ __attribute__((cleanup(ky_cleanup_fclose)))

static inline void ky_cleanup_free(void *p)
{
	free(*(void **)p);
}

/* Closes *fd if it is a descriptor. Preserves errno. */
static inline void ky_cleanup_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
#ifdef KY_DIRECT_CALLS
		ky_call(SYS_close, *fd);
#else
		close(*fd);
#endif
	errno = saved;
}

static inline void ky_cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Closes fd if it is a descriptor. Returns -1, which the caller stores in fd. */
static inline int ky_close(int fd)
{
	ky_cleanup_close(&fd);
	return -1;
}

static inline uint64_t ky_align_up(uint64_t v, uint64_t align)
{
	return (v + align - 1) & ~(align - 1);
}

static inline bool ky_is_pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Returns the smallest power of two that is at least v; v must be in 1 .. 2^63. */
static inline uint64_t ky_roundup_pow2(uint64_t v)
{
	return v <= 1 ? 1 : (uint64_t)1 << (64 - __builtin_clzll(v - 1));
}

#endif
