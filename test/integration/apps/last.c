/* SPDX-License-Identifier: MIT */
/*
 * last N [wait|files|threads] [ANYTHING]: starts N threads and leaves main by pthread_exit(). Each
 * thread records 10 events, waits for a line if the second argument is "wait", and ends. At exit
 * the program prints "bye". With "files" or "threads", main may open or start no more of them. With
 * a third argument, a child does all this, and the parent exits with the child's status.
 */
#include <kymo/tracepoint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int waits;

static void say_bye(void)
{
	printf("bye\n"); /* stays in stdio's buffer until the C library flushes it */
}

static void *record(void *arg)
{
	char c;

	for (int i = 0; i < 10; i++)
		kymo_event(last, event, kymo_i32(i, i));
	if (waits && read(STDIN_FILENO, &c, 1) != 1)
		_exit(3);
	return arg;
}

static void *leave(void *arg)
{
	pthread_exit(arg);
}

static void limit(const char *what)
{
	const struct rlimit none = {0, 0};
	pthread_t thread;

	/* pthread_exit() opens a library the first time */
	pthread_create(&thread, NULL, leave, NULL);
	pthread_join(thread, NULL);
	if (!strcmp(what, "files"))
		setrlimit(RLIMIT_NOFILE, &none);
	/* the limit of threads does not apply to root */
	if (!strcmp(what, "threads") &&
		(setrlimit(RLIMIT_NPROC, &none) || (!geteuid() && setuid(65534))))
		_exit(4);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status;

	waits = argc > 2 && !strcmp(argv[2], "wait");
	if (argc > 3 && fork()) {
		wait(&status);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	atexit(say_bye);
	for (int i = 0; i < atoi(argv[1]); i++)
		pthread_create(&thread, NULL, record, NULL);
	if (waits)
		write(STDOUT_FILENO, "ready\n", 6);
	if (argc > 2 && (!strcmp(argv[2], "files") || !strcmp(argv[2], "threads")))
		limit(argv[2]);
	pthread_exit(NULL);
}
