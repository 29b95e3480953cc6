/* SPDX-License-Identifier: MIT */
/*
 * The trace clock: its counter, its frequency, and the wall-clock time of its zero.
 *
 * A session's clock is measured once, when the session is created, and is written into its
 * metadata. The frequency of a counter is the kernel's own (from perf's page), so that all sessions
 * of a boot agree to the last digit. If the kernel does not provide it, each process measures it
 * once.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <time.h>

#include "abi/ring.h"
#include "base/util.h"

struct ky_clock_info {
	enum ky_clock clock;
	uint64_t freq; /* Hz */
	/* from 1970 to clock value 0: seconds, and cycles beyond them (0 .. freq - 1) */
	int64_t offset_s;
	uint64_t offset;
	const char *description;
};

static inline uint64_t ky_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Returns the counter of this machine that applications can read; KY_CLOCK_MONOTONIC if there is
 * none.
 */
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

/* Reads the machine's counter; 0 if there is none that applications can read. */
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
 * Returns the best clock of this machine: the counter if the kernel itself uses it for its time,
 * else CLOCK_MONOTONIC. KYMO_CLOCK=monotonic or tsc in the environment overrides this.
 */
enum ky_clock ky_clock_choose(void);

/*
 * Measures `clock` against the wall clock. Takes some microseconds, or up to 0.03 s the first time
 * if the kernel does not provide the counter's frequency.
 */
void ky_clock_measure(enum ky_clock clock, struct ky_clock_info *ret_info);

#endif
