/* SPDX-License-Identifier: MIT */
/* Shared by programs of this folder that measure their work by the clock, not by loops. */
#ifndef CLOCK_H
#define CLOCK_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <kymo/span.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Works until so much time has passed. */
static inline void busy(double us)
{
	struct timespec t;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3 + us;
	do
		clock_gettime(CLOCK_MONOTONIC, &t);
	while ((double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3 < end);
}

static inline double dice(void)
{
	static __thread unsigned short s[3];

	if (!s[0] && !s[1] && !s[2]) {
		uint64_t seed = (clock_us() ^ (uint64_t)(uintptr_t)s) * 0x9e3779b97f4a7c15u;

		memcpy(s, &seed, sizeof(s));
	}
	return erand48(s);
}

static inline int pick(int n)
{
	return (int)(dice() * n);
}

static inline void start(pthread_t *t, int n, void *(*f)(void *))
{
	for (intptr_t i = 0; i < n; i++)
		pthread_create(&t[i], NULL, f, (void *)i);
}

static inline void finish(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}
#endif
