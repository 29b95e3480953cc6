/* SPDX-License-Identifier: MIT */
/*
 * Limits the work for an input: a constant, and so much for each byte. Measures the CPU time of
 * this thread, so that the load of the machine does not matter. The constants leave room for
 * sanitizers. Work that grows with the square of the input soon exceeds the limit.
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
