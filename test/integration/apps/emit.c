/* SPDX-License-Identifier: MIT */
/*
 * Emits a known number of events whose values can be checked: emit:record from threads, and
 * emit:signal from the handler of a timer's signal, which interrupts the threads. Prints "records
 * N" and "signals N", the numbers of emitted events.
 *
 *   emit [-t THREADS] [-n EVENTS-EACH] [-p NUMBER] [-s MICROSECONDS] [-m] [-w] [-f]
 *
 * -p: the number of this process in the records. -s: the period of the signal. -m: threads move
 * from CPU to CPU all the time. -w: print "ready" and wait for a line on stdin, before and after
 * emitting. -f: print "emitting", and emit until a line arrives.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define MAX_THREADS 256

static unsigned int n_threads = 1, process, signal_us;
static unsigned long n_each = 1000;
static bool migrate, wait_for_lines, until_line;
static atomic_bool ending;
static atomic_ulong n_records, n_signals;

/* splitmix64: a reader can compute the value again from the other values. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void on_signal(int sig)
{
	uint64_t seq = atomic_fetch_add(&n_signals, 1);

	(void)sig;
	kymo_event(emit, signal, kymo_u32(process, process), kymo_u64(seq, seq),
		kymo_u64(check, mix(~seq)));
}

/* Pins the thread to the next one of the CPUs that the process may use, again and again. */
static void move_on(const cpu_set_t *allowed, int *cpu)
{
	cpu_set_t one;

	do {
		*cpu = (*cpu + 1) % CPU_SETSIZE;
	} while (!CPU_ISSET(*cpu, allowed));
	CPU_ZERO(&one);
	CPU_SET(*cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *emit(void *arg)
{
	unsigned int thread = (unsigned int)(uintptr_t)arg;
	cpu_set_t allowed;
	uint64_t seq;
	int cpu = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (seq = 0; seq < n_each && !atomic_load_explicit(&ending, memory_order_relaxed); seq++) {
		if (migrate && seq % 16 == 0)
			move_on(&allowed, &cpu);
		kymo_event(emit, record, kymo_u32(process, process), kymo_u32(thread, thread),
			kymo_u64(seq, seq),
			kymo_u64(check,
				mix((uint64_t)process << 48 | (uint64_t)thread << 32 | seq)));
	}
	atomic_fetch_add(&n_records, seq);
	return NULL;
}

static void wait_line(const char *say)
{
	char line[16];

	puts(say);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void run_threads(void)
{
	pthread_t threads[MAX_THREADS];

	for (unsigned int i = 0; i < n_threads; i++) {
		if (pthread_create(&threads[i], NULL, emit, (void *)(uintptr_t)i))
			exit(3);
	}
	if (until_line) {
		wait_line("emitting");
		atomic_store(&ending, true);
	}
	for (unsigned int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
}

static void start_signals(timer_t *timer)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec every = {
		.it_interval.tv_nsec = signal_us * 1000L, .it_value.tv_nsec = signal_us * 1000L};

	sigaction(SIGUSR1, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, timer) || timer_settime(*timer, 0, &every, NULL))
		exit(3);
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "t:n:p:s:mwf")) != -1) {
		if (c == 't')
			n_threads = (unsigned int)atoi(optarg);
		else if (c == 'n')
			n_each = strtoul(optarg, NULL, 10);
		else if (c == 'p')
			process = (unsigned int)atoi(optarg);
		else if (c == 's')
			signal_us = (unsigned int)atoi(optarg);
		else if (c == 'm')
			migrate = true;
		else if (c == 'w')
			wait_for_lines = true;
		else if (c == 'f')
			until_line = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	timer_t timer;

	parse(argc, argv);
	if (n_threads > MAX_THREADS)
		return 2;
	n_each = until_line ? ULONG_MAX : n_each;
	if (wait_for_lines)
		wait_line("ready");
	if (signal_us)
		start_signals(&timer);
	run_threads();
	if (signal_us) {
		timer_delete(timer);
		signal(SIGUSR1, SIG_IGN);
	}
	printf("records %lu\nsignals %lu\n", atomic_load(&n_records), atomic_load(&n_signals));
	fflush(stdout);
	if (wait_for_lines)
		wait_line("done");
	return 0;
}
