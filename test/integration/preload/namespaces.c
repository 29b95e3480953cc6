/* SPDX-License-Identifier: MIT */
/*
 * namespaces [thread]: enters a user namespace, then its user gets a number there; fails to enter
 * it again; forks. Allocates between the steps, each time another size, and prints what each step
 * returns. thread: beside another thread, where the kernel refuses the first step.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(size_t size)
{
	for (int i = 0; i < 100; i++)
		free(malloc(size));
}

static void say(const char *step, int result)
{
	printf("%s: %s\n", step, result < 0 ? strerror(errno) : "done");
	fflush(stdout);
}

static int map_user(uid_t uid)
{
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	int result = fd < 0 ? -1 : dprintf(fd, "0 %u 1\n", (unsigned)uid);

	close(fd);
	return result;
}

static void *sleep_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	uid_t uid = geteuid();
	pthread_t thread;
	pid_t child;
	int fd;

	if (argc > 1)
		pthread_create(&thread, NULL, sleep_for_ever, NULL);
	allocate(70001);
	say("unshare", unshare(CLONE_NEWUSER));
	allocate(70002);
	say("map", map_user(uid));
	printf("user %u\n", (unsigned)geteuid());
	fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	say("setns", setns(fd, CLONE_NEWUSER));
	allocate(70003);
	child = fork();
	if (!child) {
		allocate(70004);
		return 0;
	}
	waitpid(child, NULL, 0);
	return 0;
}
