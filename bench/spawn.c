/* SPDX-License-Identifier: MIT */
/*
 * spawn N one-by-one|at-once PROGRAM: runs a program N times and prints nanoseconds, from before
 * the start until it was waited for: of one run (the median), or of all of them together. It is a
 * small C program, because starting programs from a large one is slower.
 */
#include <errno.h>
#include <spawn.h>
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
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED;
}

static int start(char *program)
{
	char *argv[] = {program, NULL};
	pid_t pid;

	return -posix_spawn(&pid, program, NULL, NULL, argv, environ);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int run_one_by_one(char *program, size_t n, uint64_t *ret_ns)
{
	uint64_t *took = calloc(n, sizeof(*took));
	int r = took ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++) {
		uint64_t begin = now_ns();

		r = start(program);
		if (!r)
			r = wait_for_one();
		took[i] = now_ns() - begin;
	}
	if (!r) {
		qsort(took, n, sizeof(*took), by_number);
		*ret_ns = took[n / 2];
	}
	free(took);
	return r;
}

static int run_at_once(char *program, size_t n, uint64_t *ret_ns)
{
	uint64_t begin = now_ns();
	size_t running = 0;
	int r = 0;

	for (; running < n && !r; running += !r)
		r = start(program);
	for (; running; running--) {
		int failed = wait_for_one();

		r = r ? r : failed;
	}
	*ret_ns = now_ns() - begin;
	return r;
}

int main(int argc, char **argv)
{
	size_t n = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
	uint64_t ns = 0;
	int r;

	if (!n) {
		fprintf(stderr, "usage: spawn N one-by-one|at-once PROGRAM\n");
		return 2;
	}
	r = strcmp(argv[2], "at-once") ? run_one_by_one(argv[3], n, &ns)
				       : run_at_once(argv[3], n, &ns);
	if (r) {
		fprintf(stderr, "spawn: %s: %s\n", argv[3], strerror(-r));
		return 1;
	}
	printf("%llu\n", (unsigned long long)ns);
	return 0;
}
