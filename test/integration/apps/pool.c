/* SPDX-License-Identifier: MIT */
/*
 * Starts many threads with the names wPROCESS-NUMBER. Each records pool:event as often as -n says.
 * Prints "pid N", "events N" and "signals N", the numbers of recorded events.
 *
 *   pool [-t THREADS] [-c AT-A-TIME] [-n EVENTS-EACH] [-p NUMBER] [-a] [-l] [-w] [-s MICROSECONDS]
 *        [-e PROGRAM]
 *
 * -c: at most so many threads run at the same time. -a: no thread ends before all have recorded.
 * -l: lock all memory when all threads have recorded that can; in pool-lock only.
 * -w: print "ready" and wait for a line on stdin, when all threads have recorded that can.
 * -s: the period of a signal whose handler records pool:signal. -e: execute this program at the
 * end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

static unsigned int n_threads = 1, at_a_time, process, signal_us;
static unsigned long n_each = 1, n_recorded, n_signals;
static bool all_stay, lock_memory, wait_for_line;
static char *program;
static sigset_t alarm_only; /* blocked in threads that have no name yet */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER, leave = PTHREAD_COND_INITIALIZER;
static unsigned int n_arrived;
static bool may_leave;

static void on_signal(int sig)
{
	(void)sig;
	kymo_event(pool, signal, kymo_i32(tid, (int32_t)syscall(SYS_gettid)));
	__atomic_fetch_add(&n_signals, 1, __ATOMIC_RELAXED);
}

/* Waits until all threads have recorded, and main lets them continue. */
static void stay(void)
{
	pthread_mutex_lock(&lock);
	n_arrived++;
	pthread_cond_signal(&arrived);
	while (!may_leave)
		pthread_cond_wait(&leave, &lock);
	pthread_mutex_unlock(&lock);
}

static void *work(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg;
	int32_t tid = (int32_t)syscall(SYS_gettid);
	char name[16];

	snprintf(name, sizeof(name), "w%u-%u", process % 10000, number);
	pthread_setname_np(pthread_self(), name);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	for (unsigned long i = 0; i < n_each; i++)
		kymo_event(pool, event, kymo_u32(process, process), kymo_u32(thread, number),
			kymo_u64(seq, i), kymo_i32(tid, tid));
	__atomic_fetch_add(&n_recorded, n_each, __ATOMIC_RELAXED);
	if (all_stay)
		stay();
	return NULL;
}

static void wait_line(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void lock_all(void)
{
#ifdef LOCK
	if (mlockall(MCL_CURRENT) < 0)
#endif
		exit(4);
}

static void run_threads(void)
{
	pthread_t *threads = calloc(n_threads, sizeof(*threads));
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	for (unsigned int i = 0; i < n_threads; i++) {
		if (i >= at_a_time)
			pthread_join(threads[i - at_a_time], NULL);
		if (pthread_create(&threads[i], &attr, work, (void *)(uintptr_t)i))
			exit(3);
	}
	pthread_mutex_lock(&lock);
	while (all_stay && n_arrived < n_threads)
		pthread_cond_wait(&arrived, &lock);
	pthread_mutex_unlock(&lock);
	if (lock_memory)
		lock_all();
	if (wait_for_line)
		wait_line();
	pthread_mutex_lock(&lock);
	may_leave = true;
	pthread_cond_broadcast(&leave);
	pthread_mutex_unlock(&lock);
	for (unsigned int i = n_threads - at_a_time; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct itimerval every = {{0, 0}, {0, 0}};
	int c;

	while ((c = getopt(argc, argv, "t:c:n:p:s:e:alw")) != -1) {
		switch (c) {
		case 't':
			n_threads = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			at_a_time = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			n_each = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			process = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 's':
			signal_us = (unsigned int)strtoul(optarg, NULL, 10);
			break;
		case 'e':
			program = optarg;
			break;
		case 'a':
			all_stay = true;
			break;
		case 'l':
			lock_memory = true;
			break;
		case 'w':
			wait_for_line = true;
			break;
		default:
			return 2;
		}
	}
	at_a_time = at_a_time && at_a_time < n_threads ? at_a_time : n_threads;
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	sigaction(SIGALRM, &action, NULL);
	every.it_value.tv_usec = every.it_interval.tv_usec = signal_us;
	setitimer(ITIMER_REAL, &every, NULL);
	run_threads();
	signal(SIGALRM, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	printf("pid %d\nevents %lu\nsignals %lu\n", (int)getpid(), n_recorded, n_signals);
	fflush(stdout);
	if (program)
		execl(program, program, (char *)NULL);
	return program ? 3 : 0;
}
