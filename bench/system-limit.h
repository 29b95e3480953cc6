/* SPDX-License-Identifier: MIT */
/*
 * The minimum cost of any tracer: it reads the clock and stores the bytes of Kymo's record in
 * sequence into the thread's own memory. No identifier, no checks. See system-kymo.h.
 */
#ifndef BENCH_SYSTEM_LIMIT_H
#define BENCH_SYSTEM_LIMIT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define STRING_BYTES 17 /* size of the text that emit.c records, with its end */

/* emit.c sets it for each thread and pass. size is a power of two, with a page behind it. */
static __thread struct {
	uint8_t *base;
	uint64_t pos, mask;
} memory;

static inline uint64_t read_clock(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static inline uint8_t *begin_record(uint32_t payload_bytes)
{
	uint8_t *p = memory.base + (memory.pos & memory.mask);
	uint32_t header = (uint32_t)read_clock();

	memcpy(p, &header, sizeof(header));
	memory.pos += sizeof(header) + payload_bytes;
	return p + sizeof(header);
}

static inline void record_int(int32_t i)
{
	memcpy(begin_record(sizeof(i)), &i, sizeof(i));
}

static inline void record_string(int32_t i, const char *s)
{
	uint8_t *p = begin_record(2 * sizeof(i) + STRING_BYTES);

	memcpy(p, &i, sizeof(i));
	memcpy(p + sizeof(i), &i, sizeof(i));
	memcpy(p + 2 * sizeof(i), s, STRING_BYTES);
}

static inline void record_eight(int32_t i)
{
	uint8_t *p = begin_record(8 * sizeof(i));

	for (int k = 0; k < 8; k++)
		memcpy(p + (unsigned)k * sizeof(i), &i, sizeof(i));
}

static inline void record_contexts(int32_t i)
{
	record_int(i);
}

static inline void record_passed(int32_t i)
{
	record_int(i);
}

static inline void record_rejected(int32_t i)
{
	record_int(i);
}

static inline void record_disabled(int32_t i)
{
	(void)i;
}

static inline void record_printf(int32_t i)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d", i);

	memcpy(begin_record((uint32_t)n + 1), text, (size_t)n + 1);
}

#endif
