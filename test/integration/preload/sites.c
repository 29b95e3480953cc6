/* SPDX-License-Identifier: MIT */
/* Waits for a mutex that another place holds, allocates, and leaves memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))

pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
void *volatile left;
static int tid;

static NOINLINE void come_in(void)
{
	__atomic_store_n(&tid, gettid(), __ATOMIC_RELEASE);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
}

static void *run(void *unused)
{
	come_in();
	return unused;
}

/* The thread waits once it is in a call of the kernel about the mutex. */
static NOINLINE int is_waiting(void)
{
	int t = __atomic_load_n(&tid, __ATOMIC_ACQUIRE);
	unsigned long object = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", t);
	f = t ? fopen(path, "r") : NULL;
	if (f) {
		if (fscanf(f, "%*d %lx", &object) != 1)
			object = 0;
		fclose(f);
	}
	return object == (unsigned long)&door;
}

static NOINLINE void keep(void)
{
	pthread_t thread;

	pthread_mutex_lock(&door);
	pthread_create(&thread, NULL, run, NULL);
	while (!is_waiting())
		usleep(1000);
	pthread_mutex_unlock(&door);
	pthread_join(thread, NULL);
}

static NOINLINE void leave(void)
{
	left = malloc(70001);
}

static NOINLINE void make_and_drop(void)
{
	void *volatile memory = malloc(80001);

	free(memory);
}

int main(void)
{
	keep();
	leave();
	for (int i = 0; i < 10; i++)
		make_and_drop();
	return 0;
}
