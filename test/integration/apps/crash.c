/* SPDX-License-Identifier: MIT */
/*
 * crash N HOW: records N events in each of two threads, and then the second one ends the program.
 * HOW: segv, abort, stack (overflow), handled (its own handler exits with 7), exit, wait.
 */
#include <kymo/tracepoint.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned n_events;
static const char *how;

static void own_handler(int signal, siginfo_t *info, void *context)
{
	(void)context;
	_exit(signal == SIGSEGV && info->si_addr == (void *)16 ? 7 : 8);
}

static volatile int *volatile bad_address = (volatile int *)16;
static volatile int depth_max = 1 << 30;

static __attribute__((noinline)) int overflow(int n)
{
	volatile char frame[1024];

	frame[n % 1024] = (char)n;
	return n < depth_max ? overflow(n + 1) + frame[0] : 0;
}

static __attribute__((noinline)) void crash_here(void)
{
	struct sigaction own = {.sa_sigaction = own_handler, .sa_flags = SA_SIGINFO};

	if (!strcmp(how, "handled"))
		sigaction(SIGSEGV, &own, NULL);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "stack"))
		overflow(0);
	if (!strcmp(how, "wait"))
		pause();
	if (strcmp(how, "exit") != 0)
		*bad_address = 1;
}

static void *thread_main(void *name)
{
	for (unsigned i = 0; i < n_events; i++)
		kymo_event(crash, step, kymo_string(thread, (const char *)name), kymo_u32(i, i));
	return NULL;
}

static void *crashing_thread(void *name)
{
	thread_main(name);
	printf("%d\n", (int)gettid());
	fflush(stdout);
	crash_here();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t first, second;
	struct rlimit no_core = {0};

	if (argc != 3)
		return 2;
	setrlimit(RLIMIT_CORE, &no_core);
	n_events = (unsigned)atoi(argv[1]);
	how = argv[2];
	pthread_create(&first, NULL, thread_main, (void *)"first");
	pthread_join(first, NULL);
	pthread_create(&second, NULL, crashing_thread, (void *)"second");
	pthread_join(second, NULL);
	return 0;
}
