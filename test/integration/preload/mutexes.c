/* SPDX-License-Identifier: MIT */
/*
 * mutexes THREADS N: each thread locks and unlocks one mutex N times. The main thread tries N times
 * to lock the mutex that it holds, and unlocks one that it does not hold. Prints the addresses of
 * the three mutexes, and the begin and end of its code.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern char __executable_start[], etext[];
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t careful = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static long n_each, counter;

static void *work(void *unused)
{
	(void)unused;
	for (long i = 0; i < n_each; i++) {
		pthread_mutex_lock(&shared);
		counter++;
		pthread_mutex_unlock(&shared);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n_threads = argc > 1 ? atoi(argv[1]) : 1;

	n_each = argc > 2 ? atol(argv[2]) : 1;
	assert(n_threads <= 64);
	assert(pthread_mutex_trylock(&held) == 0);
	for (int i = 0; i < n_threads; i++)
		assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (long i = 0; i < n_each; i++)
		assert(pthread_mutex_trylock(&held) == EBUSY);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	assert(pthread_mutex_unlock(&careful) == EPERM);
	assert(pthread_mutex_unlock(&held) == 0);
	assert(counter == n_each * n_threads);
	printf("%p %p %p %p %p\n", (void *)&shared, (void *)&held, (void *)&careful,
		(void *)__executable_start, (void *)etext);
	return 0;
}
