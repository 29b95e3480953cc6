/* SPDX-License-Identifier: MIT */
/*
 * Exits while its threads are recording events. The threads take longer to compute the values of an
 * event than the process takes from the unregistration of its events to its end.
 */
#include <pthread.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define THREADS 4

static int begun; /* number of threads that have recorded an event */

static uint64_t slowly(uint64_t value)
{
	usleep(2000);
	return value;
}

static void *work(void *unused)
{
	(void)unused;
	for (uint64_t i = 0;; i++) {
		kymo_event(leave, slow, kymo_u64(i, slowly(i)));
		if (!i)
			__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Runs last: destructors with a priority run from the highest number to the lowest. */
static __attribute__((destructor(100))) void after_all_others(void)
{
	usleep(20000);
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread, NULL, work, NULL);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
		usleep(1000);
	return 0;
}
