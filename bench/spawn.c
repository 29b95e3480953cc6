/* SPDX-License-Identifier: MIT */
/*
 * spawn N one-by-one|at-once PROGRAM: runs a program N times and prints the nanoseconds that took, as a whole: each from before
 * its start until it was waited for. A small C program, because starting programs from a large one is slower.
 */
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int wait_for_one(void)
{
	int status;

	if (wait(&status) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int run(unsigned long n, bool at_once, char *program)
{
	char *argv[] = {program, NULL};
	unsigned long running = 0;
	pid_t pid;
	int r = 0;

	for (unsigned long i = 0; i < n && !r; i++) {
		r = -posix_spawn(&pid, program, NULL, NULL, argv, environ);
		running += !r;
		if (!r && !at_once) {
			r = wait_for_one();
			running--;
		}
	}
	for (; running; running--) {
		int failed = wait_for_one();

		r = r ? r : failed;
	}
	return r;
}

int main(int argc, char **argv)
{
	uint64_t begin;
	int r;

	if (argc != 4) {
		fprintf(stderr, "usage: spawn N one-by-one|at-once PROGRAM\n");
		return 2;
	}
	begin = now_ns();
	r = run(strtoul(argv[1], NULL, 10), !strcmp(argv[2], "at-once"), argv[3]);
	if (r) {
		fprintf(stderr, "spawn: %s: %s\n", argv[3], strerror(-r));
		return 1;
	}
	printf("%llu\n", (unsigned long long)(now_ns() - begin));
	return 0;
}
