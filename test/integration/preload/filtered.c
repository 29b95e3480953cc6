/* SPDX-License-Identifier: MIT */
/*
 * filtered prctl|seccomp: as servers do, installs a filter that kills the process if its threads
 * make the calls that read a thread's name and users, by this call. Allocates longer than such
 * values count as valid, in main and in another thread.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int install(const char *call)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getresuid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (!strcmp(call, "prctl"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static void *allocate(void *size)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		free(malloc(*(size_t *)size));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 3000000);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t size[] = {70001, 70002};
	pthread_t thread;

	if (argc != 2 || prctl(PR_SET_NAME, "server") || install(argv[1]))
		return 77;
	allocate(&size[0]);
	if (pthread_create(&thread, NULL, allocate, &size[1]) || pthread_join(thread, NULL))
		return 1;
	puts("done");
	return 0;
}
