/* SPDX-License-Identifier: MIT */
/*
 * waits N: calls each function that waits N times, also with a second thread, and checks the
 * results. Prints the addresses of the objects.
 */
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, timed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static mtx_t mtx;
static cnd_t cnd;
static int n_each, turn, c11_turn, word;

static void *other(void *unused)
{
	(void)unused;
	for (int i = 0; i < n_each; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != 2 * i + 1)
			pthread_cond_wait(&cond, &mutex);
		turn++;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
		mtx_lock(&mtx);
		while (c11_turn != 2 * i + 1)
			cnd_wait(&cnd, &mtx);
		c11_turn++;
		cnd_broadcast(&cnd);
		mtx_unlock(&mtx);
		sem_wait(&sem);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void take_turns(int i)
{
	pthread_mutex_lock(&mutex);
	turn++;
	pthread_cond_broadcast(&cond);
	while (turn != 2 * i + 2)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	mtx_lock(&mtx);
	c11_turn++;
	cnd_signal(&cnd);
	while (c11_turn != 2 * i + 2)
		cnd_wait(&cnd, &mtx);
	mtx_unlock(&mtx);
	sem_post(&sem);
	pthread_barrier_wait(&barrier);
}

/* All that times out, or does not wait. The caller holds `timed`. */
static void *try_all(void *unused)
{
	struct timespec past = {0};
	sem_t empty;

	(void)unused;
	sem_init(&empty, 0, 0);
	assert(pthread_mutex_timedlock(&timed, &past) == ETIMEDOUT);
	assert(pthread_mutex_clocklock(&timed, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	assert(pthread_rwlock_timedrdlock(&rwlock, &past) == ETIMEDOUT);
	assert(pthread_rwlock_timedwrlock(&rwlock, &past) == ETIMEDOUT);
	assert(pthread_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	assert(pthread_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	assert(pthread_rwlock_tryrdlock(&rwlock) == EBUSY);
	assert(pthread_rwlock_trywrlock(&rwlock) == EBUSY);
	assert(sem_trywait(&empty) == -1 && errno == EAGAIN);
	assert(sem_timedwait(&empty, &past) == -1 && errno == ETIMEDOUT);
	assert(sem_clockwait(&empty, CLOCK_MONOTONIC, &past) == -1 && errno == ETIMEDOUT);
	pthread_mutex_lock(&mutex);
	assert(pthread_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT);
	assert(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past) == ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
	assert(mtx_timedlock(&mtx, &past) == thrd_timedout);
	assert(mtx_trylock(&mtx) == thrd_busy);
	return NULL;
}

/* syscall() with all kinds of arguments: what waits for a futex, and what does not. */
static void call_kernel(void)
{
	const struct timespec short_time = {0, 1};
	size_t size = (size_t)getpagesize();
	long map;

	assert(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL) == -1 && errno == EAGAIN);
	assert(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &short_time) == -1 &&
		errno == ETIMEDOUT);
	assert(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1) == 0);
	assert(syscall(SYS_getpid) == getpid());
	map = syscall(
		SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	assert(map != -1 && *(char *)map == 0);
	assert(syscall(SYS_mmap, NULL, size, PROT_READ, MAP_PRIVATE, -1, 0L) == -1 &&
		errno == EBADF);
	assert(syscall(SYS_munmap, map, size) == 0);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	n_each = argc > 1 ? atoi(argv[1]) : 1;
	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&sem, 0, 0);
	mtx_init(&mtx, mtx_timed);
	cnd_init(&cnd);
	pthread_create(&thread, NULL, other, NULL);
	for (int i = 0; i < n_each; i++)
		take_turns(i);
	pthread_join(thread, NULL);
	call_kernel();
	pthread_mutex_lock(&timed);
	mtx_lock(&mtx);
	pthread_rwlock_wrlock(&rwlock);
	pthread_create(&thread, NULL, try_all, NULL);
	pthread_join(thread, NULL);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	printf("%p %p %p %p %p %p %p %p\n", (void *)&timed, (void *)&mtx, (void *)&rwlock,
		(void *)&cond, (void *)&cnd, (void *)&sem, (void *)&barrier, (void *)&word);
	return 0;
}
