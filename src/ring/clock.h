/* SPDX-License-Identifier: MIT */
/*
 * Reading a trace's clock where a restartable sequence does not do it itself. Keeps errno.
 */
#ifndef RING_CLOCK_H
#define RING_CLOCK_H

#include <time.h>

#include "abi/ring.h"

static inline uint64_t ky_clock_read(uint32_t clock)
{
	struct timespec t;

#if defined(__x86_64__) || defined(__i386__)
	if (clock == KY_CLOCK_TSC)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	if (clock == KY_CLOCK_CNTVCT) {
		__asm__ __volatile__("isb\n\tmrs %0, cntvct_el0" : "=r"(v) : : "memory");
		return v;
	}
#endif
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
