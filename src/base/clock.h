/* SPDX-License-Identifier: MIT */
/*
 * The trace clock: which counter it is, its frequency, and what wall-clock time its zero is.
 *
 * A session's clock is measured once, when the session is made, and stands in its metadata. The
 * frequency of a counter is the kernel's own (from perf's page), so that all sessions of a boot
 * agree to the last digit; where the kernel does not tell, it is measured once by each process.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <time.h>

#include "abi/ring.h"
#include "base/util.h"

struct ky_clock_info {
	enum ky_clock clock;
	uint64_t freq;	  /* Hz */
	int64_t offset_s; /* 1970 to clock value 0: seconds, and cycles beyond them (0 .. freq - 1)
			   */
	uint64_t offset;
	const char *description;
};

static inline uint64_t ky_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Which counter this machine has that programs can read; KY_CLOCK_MONOTONIC when none. */
static inline enum ky_clock ky_clock_of_machine(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return KY_CLOCK_TSC;
#elif defined(__aarch64__)
	return KY_CLOCK_CNTVCT;
#else
	return KY_CLOCK_MONOTONIC;
#endif
}

/* The machine's counter; 0 where there is none that programs can read. */
static inline uint64_t ky_clock_counter(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(v)::"memory");
	return v;
#else
	return 0;
#endif
}

static inline uint64_t ky_clock_read(enum ky_clock clock)
{
	return clock == KY_CLOCK_MONOTONIC ? ky_clock_ns(CLOCK_MONOTONIC) : ky_clock_counter();
}

/*
 * The best clock of this machine: the counter where the kernel itself keeps time by it, else
 * CLOCK_MONOTONIC. KYMO_CLOCK=monotonic or tsc in the environment decides instead.
 */
enum ky_clock ky_clock_choose(void);

/*
 * Measures `clock` against the wall clock. Takes some microseconds, but up to 0.03 s the first time
 * where the kernel does not tell the counter's frequency.
 */
void ky_clock_measure(enum ky_clock clock, struct ky_clock_info *ret_info);

#endif
