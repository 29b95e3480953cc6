/* SPDX-License-Identifier: MIT */
/*
 * Programs that are killed or stopped at any instruction. After each event the program increments a
 * counter in shared memory. The counters outlive the process, and tests compare the trace with
 * them.
 *
 *   victim kill N SEED    kills N children, one after the other, while two threads and a timer's
 *                         handler of the child record; prints "killed K THREAD COUNT" (thread 2:
 *                         the handler)
 *   victim stop N SEED    stops one child N times, and records 20 events itself meanwhile; then
 *                         leaves it stopped, prints "stopped", and continues it when a line
 *                         arrives; prints "counts CHILD SIBLING"
 *   victim survive        records until a line arrives; prints "survived COUNT"
 *   victim last N FILE    records in two threads, as number N, until a line arrives; prints
 *                         "recording"; the counters are in FILE
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define THREADS	 2
#define COUNTERS (THREADS + 1)
/*
 * maxima of events of a thread that is killed, and of the child that is stopped: the rings must
 * hold them all, because the consumer may wait for a CPU or for its disk meanwhile
 */
#define MOST	     1500u
#define MOST_STOPPED 200000u
/* most events of a thread without a pause, and for each a pause in microseconds */
#define BURST	 32
#define PAUSE_US 25

static volatile uint64_t *counters, *finish;
static uint32_t number; /* number of this victim */
static uint64_t random_state;

/* splitmix64; the checks of kymotest compute it again. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void record(uint32_t thread, uint64_t seq)
{
	kymo_event(victim, event, kymo_u32(victim, number), kymo_u32(thread, thread),
		kymo_u64(seq, seq),
		kymo_u64(check, mix((uint64_t)number << 48 | (uint64_t)thread << 32 | seq)));
}

/* The tracepoint has returned: from now on the event must be in the trace. */
static void count(uint32_t thread)
{
	__atomic_store_n(&counters[thread], counters[thread] + 1, __ATOMIC_RELEASE);
}

static void work(int turns)
{
	uint64_t x = 1;

	for (int i = 0; i < turns; i++) {
		x = mix(x);
		__asm__ __volatile__("" : "+r"(x));
	}
}

static void *record_much(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	while (counters[thread] < MOST) {
		record(thread, counters[thread]);
		count(thread);
		work(100);
	}
	for (;;)
		pause();
	return NULL;
}

static void on_timer(int sig)
{
	(void)sig;
	if (counters[THREADS] >= MOST)
		return;
	record(THREADS, counters[THREADS]);
	count(THREADS);
}

static void be_killed(void)
{
	struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
	struct itimerval every = {.it_interval.tv_usec = 50, .it_value.tv_usec = 50};
	sigset_t timer;
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&timer);
	sigaddset(&timer, SIGALRM);
	sigaction(SIGALRM, &action, NULL);
	/* Only one thread handles the signal: its counter must rise in order. */
	pthread_sigmask(SIG_BLOCK, &timer, NULL);
	if (pthread_create(&t, NULL, record_much, (void *)(uintptr_t)1))
		_exit(3);
	pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	record_much((void *)(uintptr_t)0);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Waits for a random time of at most so many microseconds. */
static void wait_random(uint32_t us)
{
	uint64_t end = now_us() + (random_state = mix(random_state)) % us;

	while (now_us() < end)
		;
}

static void wait_for_first(pid_t child)
{
	uint64_t end = now_us() + 180000000;

	while (!counters[0] || !counters[1]) {
		usleep(20);
		if (now_us() > end || waitpid(child, NULL, WNOHANG)) {
			puts("a child did not record");
			exit(3);
		}
	}
}

static int kill_all(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t child;

		memset((void *)counters, 0, COUNTERS * sizeof(*counters));
		number = (uint32_t)i;
		child = fork();
		if (!child)
			be_killed();
		wait_for_first(child);
		wait_random(200);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		for (int k = 0; k < COUNTERS; k++)
			printf("killed %d %d %lu\n", i, k, (unsigned long)counters[k]);
	}
	return 0;
}

static void record_until_finish(uint32_t thread)
{
	while (!*finish) {
		if (counters[thread] < MOST_STOPPED) {
			record(thread, counters[thread]);
			count(thread);
		}
		work(1000);
	}
}

static void wait_for_line(void)
{
	char line[16];

	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(3);
}

static int stop_often(int n)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		record_until_finish(0);
		_exit(0);
	}
	while (!counters[0])
		usleep(20);
	for (int i = 0; i < n; i++) {
		wait_random(100);
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED);
		for (int k = 0; k < 20; k++) {
			record(1, counters[1]);
			count(1);
		}
		if (i == n - 1) {
			puts("stopped");
			wait_for_line();
		}
		kill(child, SIGCONT);
	}
	*finish = 1;
	waitpid(child, NULL, 0);
	printf("counts %lu %lu\n", (unsigned long)counters[0], (unsigned long)counters[1]);
	return 0;
}

/* So slowly that a thread's ring has room for half a minute. */
static void *record_slowly(void *unused)
{
	while (!*finish) {
		record(0, counters[0]);
		count(0);
		usleep(1000);
	}
	return unused;
}

static int survive(void)
{
	pthread_t thread;

	number = 0xffff;
	if (pthread_create(&thread, NULL, record_slowly, NULL))
		return 3;
	while (!counters[0])
		usleep(20);
	puts("surviving");
	wait_for_line();
	*finish = 1;
	pthread_join(thread, NULL);
	printf("survived %lu\n", (unsigned long)counters[0]);
	return 0;
}

/*
 * The share of time in which a thread is inside a tracepoint depends only on its events a second:
 * bursts of random length, with pauses between them, need no CPU of their own for that.
 */
static void *record_steadily(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	while (!*finish) {
		uint32_t n = 1 + (uint32_t)(mix(counters[thread]) % BURST);

		for (uint32_t i = 0; i < n; i++) {
			record(thread, counters[thread]);
			count(thread);
			work(100);
		}
		usleep(n * PAUSE_US);
	}
	return NULL;
}

static int last(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, record_steadily, (void *)i))
			return 3;
	while (!counters[0] || !counters[1])
		usleep(20);
	puts("recording");
	wait_for_line();
	*finish = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

int main(int argc, char **argv)
{
	bool kept = argc == 4 && !strcmp(argv[1], "last");
	int fd = kept ? open(argv[3], O_RDWR | O_CLOEXEC) : -1;

	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		kept ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
	if (counters == MAP_FAILED || argc < 2)
		return 3;
	finish = counters + COUNTERS;
	random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	if (!strcmp(argv[1], "kill") && argc == 4)
		return kill_all(atoi(argv[2]));
	if (!strcmp(argv[1], "stop") && argc == 4)
		return stop_often(atoi(argv[2]));
	if (kept) {
		number = (uint32_t)atoi(argv[2]);
		return last();
	}
	return strcmp(argv[1], "survive") ? 2 : survive();
}
