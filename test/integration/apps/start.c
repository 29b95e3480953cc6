/* SPDX-License-Identifier: MIT */
/*
 * Measures what tracing adds to the start of a program: compiled with an event, or (PLAIN) without.
 * Both have a thread. With an argument it records one event, prints "ready", and exits at the end
 * of its standard input.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#ifdef PLAIN
#define record(number) ((void)(number))

static void *sleep_forever(void *unused)
{
	pause();
	return unused;
}

static __attribute__((constructor)) void start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_create(&thread, &attr, sleep_forever, NULL);
}
#else
#include <kymo/tracepoint.h>

#define record(number) kymo_event(start, started, kymo_i32(number, number))
#endif

int main(int argc, char **argv)
{
	char c;

	(void)argv;
	record(argc);
	if (argc == 1)
		return 0;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	return 0;
}
