/* SPDX-License-Identifier: MIT */
/*
 * memory THREADS N [VALLOC]: calls each memory function a known number of times, with sizes that
 * nothing else requests: in a constructor, in threads, and at exit. Prints "ok" when all results
 * are right. VALLOC: do not call pvalloc, which some allocators do not have.
 */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long n_each;
static void *(*page_alloc)(size_t size) = pvalloc;
static void *volatile sink;

static void *keep(void *p, size_t size)
{
	assert(p);
	memset(p, 0x5a, size);
	return sink = p;
}

static __attribute__((constructor)) void before_main(void)
{
	free(keep(malloc(70001), 70001));
}

static void at_exit(void)
{
	free(keep(malloc(71001), 71001));
}

static void aligned(size_t alignment, void *p, size_t size)
{
	assert((uintptr_t)p % alignment == 0);
	free(keep(p, size));
}

static void *work(void *unused)
{
	(void)unused;
	for (long i = 0; i < n_each; i++) {
		void *p = NULL;

		errno = 77;
		p = keep(malloc(80001), 80001);
		p = keep(realloc(p, 80002), 80002);
		free(p);
		p = calloc(7, 11443);
		assert(p && !((char *)p)[7 * 11443 - 1]);
		free(p);
		free(keep(reallocarray(NULL, 5, 20001), 100005));
		assert(posix_memalign(&p, 64, 90001) == 0);
		aligned(64, p, 90001);
		aligned(128, aligned_alloc(128, 89728), 89728);
		aligned(256, memalign(256, 90003), 90003);
		aligned(4096, valloc(90004), 90004);
		aligned(4096, page_alloc(90005), 90005);
		assert(errno == 77);
		assert(!malloc(SIZE_MAX / 2 - 5) && errno == ENOMEM);
		errno = 0;
		assert(!reallocarray(NULL, SIZE_MAX / 2, 3) && errno == ENOMEM);
		assert(posix_memalign(&p, 3, 90007) == EINVAL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	int n_threads = argc > 1 ? atoi(argv[1]) : 1;

	n_each = argc > 2 ? atol(argv[2]) : 1;
	if (argc > 3)
		page_alloc = valloc;
	assert(n_threads <= 64);
	atexit(at_exit);
	for (int i = 0; i < n_threads; i++)
		assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	puts("ok");
	return 0;
}
