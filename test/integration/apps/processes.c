/* SPDX-License-Identifier: MIT */
/*
 * processes forks N: forks N children, which record 10 events each, while two threads record.
 * Prints the number of events.
 * processes closes: closes all descriptors from 3 on, as daemons do, and opens its own with these
 * numbers. Records 100 events meanwhile. Prints "unharmed" when its pipe carries what it wrote.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define THREADS 2

static int done;
static long recorded[THREADS];

static void *record(void *count)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		kymo_event(processes, thread, kymo_i32(pid, getpid()));
		__atomic_fetch_add((long *)count, 1, __ATOMIC_RELAXED);
		usleep(100);
	}
	return NULL;
}

/*
 * Returns when the threads run: a sanitizer's allocator is not ready for a fork while a thread
 * starts.
 */
static void start_threads(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, record, &recorded[i]);
	for (int i = 0; i < THREADS; i++)
		while (!__atomic_load_n(&recorded[i], __ATOMIC_RELAXED))
			usleep(100);
}

static int forks(int n)
{
	pthread_t threads[THREADS];
	long sum = 0;

	start_threads(threads);
	for (int i = 0; i < n; i++) {
		if (fork())
			continue;
		for (int k = 0; k < 10; k++)
			kymo_event(processes, child, kymo_i32(pid, getpid()), kymo_i32(k, k));
		_exit(0);
	}
	while (wait(NULL) > 0)
		sum += 10;
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += recorded[i];
	}
	printf("%ld\n", sum);
	return 0;
}

static int closes(void)
{
	char got[6] = "";
	int ends[2], fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	if (pipe(ends) || ends[0] != 3 || write(ends[1], "hello", 5) != 5)
		return 1;
	for (int i = 0; i < 100; i++) {
		kymo_event(processes, closed, kymo_i32(i, i));
		usleep(1000);
	}
	puts(read(ends[0], got, 5) == 5 && !strcmp(got, "hello") ? "unharmed" : "harmed");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "forks"))
		return forks(atoi(argv[2]));
	return argc == 2 && !strcmp(argv[1], "closes") ? closes() : 2;
}
