/* SPDX-License-Identifier: MIT */
/*
 * Meets the conditions of triggers while it emits at full speed.
 *
 *   hits event THREADS TICKS AT [EACH]   Each thread emits TICKS events hits:tick. After tick AT,
 *                                        and EACH (1) - 1 more, it emits hits:hit
 *                                        and hits:word. With KYMO_HITS_PIN=1, each thread
 *                                        stays on a CPU of its own, as long as there are some.
 *   hits killed AT                       Emits events hits:tick up to AT, then hits:hit, and is
 *                                        killed.
 *   hits spans MICROSECONDS...           Emits a span hits:work for each number, of that duration,
 *                                        with 10 short ones in it, and one hits:order.
 *   hits open N                          Begins N asynchronous spans hits:order, and ends none.
 *
 * Prints "ready" and waits for a line first, and prints the number of emitted events. With
 * KYMO_HITS_HOLD=1 it waits for another line before it ends.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/span.h>

static unsigned long n_ticks, at, n_each;
static atomic_ulong n_emitted;

/* Leaves the calling thread the CPU that is the number-th of those that the program may use. */
static void pin(uint32_t number)
{
	cpu_set_t all, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(all), &all);
	for (number = number % (uint32_t)CPU_COUNT(&all) + 1; number;
		number -= CPU_ISSET(cpu, &all) != 0)
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *emit(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	if (getenv("KYMO_HITS_PIN"))
		pin(thread);
	for (unsigned long i = 0; i < n_ticks; i++) {
		kymo_event(hits, tick, kymo_u32(thread, thread), kymo_u64(n, i));
		atomic_fetch_add_explicit(&n_emitted, 1, memory_order_relaxed);
		if (i < at || i >= at + n_each)
			continue;
		kymo_event(hits, hit, kymo_u32(thread, thread), kymo_u64(n, i));
		kymo_event(hits, word, kymo_u64(n, i));
		atomic_fetch_add_explicit(&n_emitted, 2, memory_order_relaxed);
	}
	return NULL;
}

static void emit_in_threads(unsigned long n_threads)
{
	pthread_t threads[64];

	for (unsigned long i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, emit, (void *)(uintptr_t)i))
			exit(3);
	for (unsigned long i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
}

/* Works, without a system call, for at least this time. */
static void work(unsigned long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((unsigned long)(now.tv_sec - begin.tv_sec) * 1000000 +
			(unsigned long)now.tv_nsec / 1000 <
		us + (unsigned long)begin.tv_nsec / 1000);
}

static void emit_spans(unsigned long us, uint64_t id)
{
	kymo_span_begin(hits, work, kymo_u64(number, id));
	for (int i = 0; i < 10; i++) {
		kymo_span_begin(hits, work, kymo_u64(number, 0));
		kymo_span_end(hits, work, kymo_u64(us, 0));
	}
	work(us);
	kymo_span_end(hits, work, kymo_u64(us, us));
	kymo_async_begin(hits, order, id);
	work(us);
	kymo_async_end(hits, order, id);
	n_emitted += 24;
}

static void wait_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		return 2;
	puts("ready");
	wait_line();
	if (!strcmp(argv[1], "event") && argc >= 5) {
		n_ticks = strtoul(argv[3], NULL, 10);
		at = strtoul(argv[4], NULL, 10);
		n_each = argc > 5 ? strtoul(argv[5], NULL, 10) : 1;
		emit_in_threads(strtoul(argv[2], NULL, 10));
	} else if (!strcmp(argv[1], "killed")) {
		at = strtoul(argv[2], NULL, 10);
		for (unsigned long i = 0; i <= at; i++)
			kymo_event(hits, tick, kymo_u32(thread, 0), kymo_u64(n, i));
		kymo_event(hits, hit, kymo_u32(thread, 0), kymo_u64(n, at));
		kill(getpid(), SIGKILL);
	} else if (!strcmp(argv[1], "open")) {
		for (unsigned long i = 0; i < strtoul(argv[2], NULL, 10); i++) {
			kymo_async_begin(hits, order, i);
			n_emitted++;
		}
	} else {
		for (int i = 2; i < argc; i++)
			emit_spans(strtoul(argv[i], NULL, 10), (uint64_t)i);
	}
	printf("%lu\n", n_emitted);
	if (getenv("KYMO_HITS_HOLD"))
		wait_line();
	return 0;
}
