/* SPDX-License-Identifier: MIT */
/*
 * A bound on the work for an input: so much for any, and so much for each byte. Counts the time of
 * this thread on a processor; the load of the machine does not matter. The constants leave
 * room for the sanitizers; what grows with the square of the input exceeds them soon.
 */
#ifndef FUZZ_LINEAR_H
#define FUZZ_LINEAR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LINEAR_BASE_NS	   ((uint64_t)5000000000)
#define LINEAR_NS_PER_BYTE 100000

static inline uint64_t linear_begin(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline void linear_end(uint64_t begin, size_t n_bytes)
{
	uint64_t ns = linear_begin() - begin;

	if (ns < LINEAR_BASE_NS + LINEAR_NS_PER_BYTE * n_bytes)
		return;
	fprintf(stderr, "%zu bytes took %llu ns\n", n_bytes, (unsigned long long)ns);
	abort();
}

#endif
