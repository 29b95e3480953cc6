/* SPDX-License-Identifier: MIT */
/*
 * quiet EVENTS: two threads and a signal handler record events of many kinds, under a filter with
 * which the kernel kills the program for any system call except read, write, exit and the return
 * from a handler. The process ends under this filter. The program also counts calls of the C
 * library that allocate memory or use locks. Prints "events N allocations N locks N of N". The last
 * number counts all calls of these functions.
 */
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

static __thread int confined __attribute__((tls_model("initial-exec")));
static unsigned long n_allocations, n_locks, n_calls, n_begun, n_ended, n_signals;
static int n_ready, n_done, finished;

/*
 * These functions replace those of the C library, for libkymo too. n_calls shows that it does so.
 */
#define INSTEAD __attribute__((visibility("default")))

static void called(unsigned long *n)
{
	__atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
	if (confined)
		__atomic_fetch_add(n, 1, __ATOMIC_RELAXED);
}

INSTEAD void *malloc(size_t size)
{
	extern void *__libc_malloc(size_t);

	called(&n_allocations);
	return __libc_malloc(size);
}

INSTEAD void *calloc(size_t n, size_t size)
{
	extern void *__libc_calloc(size_t, size_t);

	called(&n_allocations);
	return __libc_calloc(n, size);
}

INSTEAD int pthread_mutex_lock(pthread_mutex_t *lock)
{
	static int (*real)(pthread_mutex_t *);

	called(&n_locks);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	return real(lock);
}

#define ALLOW(call)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Applies the filter to this thread. */
static void confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(write),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW(rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) {
		puts("no seccomp");
		exit(77);
	}
	confined = 1;
}

static void begin(void)
{
	__atomic_fetch_add(&n_begun, 1, __ATOMIC_SEQ_CST);
}

static void end(void)
{
	__atomic_fetch_add(&n_ended, 1, __ATOMIC_SEQ_CST);
}

static void on_signal(int sig)
{
	begin();
	if (!__atomic_load_n(&finished, __ATOMIC_SEQ_CST)) {
		kymo_event(quiet, signal, kymo_i32(sig, sig));
		__atomic_fetch_add(&n_signals, 1, __ATOMIC_RELAXED);
	}
	end();
}

static void record(int i)
{
	static const char long_text[] =
		"a text that is longer than what is copied by way of the buffer on the stack";
	static const uint32_t numbers[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
	char text[8] = {(char)('a' + i % 26)};

	begin();
	switch (i % 5) {
	case 0:
		kymo_event(quiet, number, kymo_i32(i, i));
		break;
	case 1:
		kymo_event(quiet, several, kymo_u64(i, (uint64_t)i), kymo_f64(half, i / 2.0),
			kymo_bool(odd, i & 1));
		break;
	case 2:
		kymo_event(quiet, texts, kymo_string(text, text), kymo_string(longer, long_text));
		break;
	case 3:
		kymo_event(quiet, sequence, kymo_seq_u32(numbers, numbers, (size_t)i % 12 + 1));
		break;
	default:
		kymo_event(quiet, nothing);
	}
	end();
}

/* Nothing is prepared before the first event. */
static void record_confined(int n)
{
	confine();
	__atomic_fetch_add(&n_ready, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&n_ready, __ATOMIC_RELAXED) < 2)
		;
	for (int i = 0; i < n; i++)
		record(i);
	__atomic_fetch_add(&n_done, 1, __ATOMIC_RELEASE);
}

/*
 * Does not return: the end of a thread calls functions that are forbidden. The process ends first.
 */
static void *other_thread(void *n)
{
	record_confined((int)(intptr_t)n);
	for (;;)
		;
	return NULL;
}

static void start_timer(void)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec every = {.it_interval.tv_nsec = 100000, .it_value.tv_nsec = 100000};
	timer_t timer;

	sigaction(SIGUSR1, &act, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &every, NULL))
		exit(3);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t thread;

	printf("quiet\n"); /* makes stdio allocate its buffer */
	start_timer();
	if (pthread_create(&thread, NULL, other_thread, (void *)(intptr_t)n))
		return 3;
	record_confined(n);
	while (__atomic_load_n(&n_done, __ATOMIC_ACQUIRE) < 2)
		;
	__atomic_store_n(&finished, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&n_begun, __ATOMIC_SEQ_CST) !=
		__atomic_load_n(&n_ended, __ATOMIC_SEQ_CST))
		;
	confined = 0;
	printf("events %lu allocations %lu locks %lu of %lu\n", 2UL * (unsigned long)n + n_signals,
		n_allocations, n_locks, n_calls);
	return 0;
}
