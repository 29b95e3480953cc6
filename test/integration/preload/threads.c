/* SPDX-License-Identifier: MIT */
/*
 * threads N: N threads, one after the other, each of which allocates 63001 bytes. The C library
 * calls free() for them at the very end of each thread, after all destructors.
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static void *work(void *unused)
{
	(void)unused;
	free(malloc(63001));
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t thread;

	for (int i = 0; i < n; i++) {
		assert(pthread_create(&thread, NULL, work, NULL) == 0);
		pthread_join(thread, NULL);
	}
	return 0;
}
