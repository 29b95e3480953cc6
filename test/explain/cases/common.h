/* SPDX-License-Identifier: MIT */
/* Shared by the programs of this folder: work of known length, random numbers, threads. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <kymo/span.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef __cplusplus
#include <stdatomic.h>
#endif

static inline double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Loops of a known length: what a thread loses to others is not made up for. */
static inline void spin(double us)
{
	static double loops_per_us;

	if (loops_per_us == 0) {
		double best = 0;

		for (int i = 0; i < 7; i++) {
			double from = now_us(), rate;

			for (volatile int k = 0; k < 200000; k++)
				;
			rate = 200000 / (now_us() - from);
			best = rate > best ? rate : best;
		}
		loops_per_us = best;
	}
	for (volatile long i = 0, n = (long)(us * loops_per_us); i < n; i++)
		;
}

static inline void snooze(double us)
{
	struct timespec t = {(time_t)(us / 1e6), (long)(fmod(us, 1e6) * 1e3)};

	nanosleep(&t, NULL);
}

static __thread uint64_t random_state;

static inline double uniform(void)
{
	uint64_t z;

	if (!random_state)
		random_state = (uint64_t)(now_us() * 1e3) ^ (uint64_t)(uintptr_t)&random_state
								    << 20;
	z = random_state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static inline int below(int n)
{
	return (int)(uniform() * n);
}

static inline int chance(double p)
{
	return uniform() < p;
}

static inline double normal(void)
{
	return sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform());
}

static inline double exponential(double mean)
{
	return -mean * log(uniform() + 1e-12);
}

/* A time with the usual noise. */
static inline double about(double us)
{
	double v = us * (1 + .12 * normal());

	return v > 0 ? v : 0;
}

static inline void name_thread(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static inline void run_threads(int n, void *(*function)(void *))
{
	pthread_t t[64];

	spin(1);
	for (intptr_t i = 0; i < n; i++)
		pthread_create(&t[i], NULL, function, (void *)i);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}
