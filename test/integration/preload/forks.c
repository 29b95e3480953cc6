/* SPDX-License-Identifier: MIT */
/*
 * forks fork|vfork N: threads allocate all the time, while main creates N children, one after the
 * other. Each child allocates 60001 bytes, and (vfork) creates a child like itself. Prints how many
 * children exited with status 0.
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink;
static volatile bool ended;
static volatile int in_children;

static void allocate(size_t size)
{
	sink = malloc(size);
	free(sink);
}

static void *work(void *unused)
{
	(void)unused;
	while (!ended) {
		free(malloc(61000));
		usleep(100);
	}
	return NULL;
}

static bool ended_well(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool child(bool by_vfork)
{
	pid_t pid = by_vfork ? vfork() : fork();

	if (pid == 0) {
		allocate(60001);
		in_children++;
		if (by_vfork) {
			pid_t second = vfork();

			if (second == 0) {
				allocate(60001);
				in_children++;
				_exit(0);
			}
			allocate(60001);
			if (!ended_well(second))
				_exit(1);
		}
		_exit(0);
	}
	allocate(62001);
	return ended_well(pid);
}

int main(int argc, char **argv)
{
	bool by_vfork = argc > 1 && !strcmp(argv[1], "vfork");
	int n = argc > 2 ? atoi(argv[2]) : 1, good = 0;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
	for (int i = 0; i < n; i++)
		good += child(by_vfork);
	ended = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	/* Children share the parent's memory after vfork only. */
	assert(in_children == (by_vfork ? 2 * n : 0));
	printf("%d\n", good);
	return 0;
}
