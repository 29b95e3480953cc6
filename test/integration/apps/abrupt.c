/* SPDX-License-Identifier: MIT */
/*
 * abrupt WAY N [fork]: starts N threads, which record for 50 ms, and ends main alone in one of
 * these ways: exit (SYS_exit with 3), strict (forbids all calls to itself, and makes one), filter
 * (a filter for all threads kills a thread that calls getppid(), and main does). With "fork", a
 * child does all this and the parent prints its status. Exits with 77 if the kernel has no filters.
 */
#include <kymo/tracepoint.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *arg)
{
	for (int i = 0; i < 50; i++) {
		kymo_event(abrupt, event, kymo_i32(i, i));
		usleep(1000);
	}
	return arg;
}

static void forbid_getppid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		_exit(77);
}

static void end(const char *way)
{
	if (!strcmp(way, "filter"))
		forbid_getppid();
	if (!strcmp(way, "strict") && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(77);
	if (strcmp(way, "exit") != 0)
		syscall(SYS_getppid);
	syscall(SYS_exit, 3);
}

int main(int argc, char **argv)
{
	struct rlimit no_core = {0, 0};
	pthread_t thread;
	int status;

	setrlimit(RLIMIT_CORE, &no_core);
	if (argc > 3 && !strcmp(argv[3], "fork") && fork()) {
		wait(&status);
		printf("status %d\n", status);
		return 0;
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		pthread_create(&thread, NULL, work, NULL);
	end(argv[1]);
}
