/* SPDX-License-Identifier: MIT */
/*
 * changing N: records at least N events with a short and a long text. Meanwhile another thread
 * writes a NUL into both texts and removes it again. The program continues until it has seen the
 * texts cut 10 times. Prints the number of events.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/tracepoint.h>

static char brief[32], lengthy[400];
static int done;

static void put(char *at, char c)
{
	__atomic_store_n(at, c, __ATOMIC_RELAXED);
}

static void wait_a_little(void)
{
	for (volatile int i = 0; i < 100; i++)
		;
}

static void *change(void *unused)
{
	(void)unused;
	for (unsigned i = 0; !__atomic_load_n(&done, __ATOMIC_RELAXED); i++) {
		put(&brief[i % 31], '\0');
		put(&lengthy[i % 300], '\0');
		wait_a_little();
		put(&brief[i % 31], 'b');
		put(&lengthy[i % 300], 'l');
		wait_a_little();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000, n_cut = 0, i;
	pthread_t thread;

	memset(brief, 'b', sizeof(brief) - 1);
	memset(lengthy, 'l', sizeof(lengthy) - 1);
	if (pthread_create(&thread, NULL, change, NULL))
		return 1;
	for (i = 0; i < n || n_cut < 10; i++) {
		n_cut += strlen(brief) < sizeof(brief) - 1;
		kymo_event(changing, text, kymo_i64(number, i), kymo_string(brief, brief),
			kymo_string(lengthy, lengthy), kymo_i64(again, i));
		if (i % 64 == 0)
			sched_yield();
	}
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%ld\n", i);
	return 0;
}
