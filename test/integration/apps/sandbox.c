/* SPDX-License-Identifier: MIT */
/*
 * sandbox NUMBER,... ACTION [PLUGIN [exec|exec-off|threads|leave]]
 *
 * Forbids calls to all its threads after its start, and continues. With exec, it forbids the calls
 * and then starts itself again, without KYMO_OFF in its environment; with exec-off, it keeps that.
 * ACTION is trap (with a handler that makes the call fail with ENOSYS), thread, process (killed),
 * error, or zero (the call seems to succeed, but is not made).
 * Before the filter, after it, and at the end of its work, it prints a line and waits for one. Its
 * work: it records 100 events, forks a child that records 100 more and exits with 7, and loads
 * PLUGIN ("-": nothing). With threads, it first records in 100 threads at once. Exits with 5; with
 * leave, main ends by pthread_exit(), and a thread prints a last line. Exits with 77 if the kernel
 * has no filters.
 */
#include <dlfcn.h>
#include <errno.h>
#include <kymo/tracepoint.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static void refuse(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
#ifdef __x86_64__
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#else
	(void)context;
#endif
}

static unsigned action_of(const char *name)
{
	switch (*name) {
	case 't':
		return name[1] == 'r' ? SECCOMP_RET_TRAP : SECCOMP_RET_KILL_THREAD;
	case 'p':
		return SECCOMP_RET_KILL_PROCESS;
	case 'z':
		return SECCOMP_RET_ERRNO;
	default:
		return SECCOMP_RET_ERRNO | EPERM;
	}
}

#define CALLS_MAX 100

static int take_away(char *numbers, unsigned action)
{
	struct sock_filter code[2 + 2 * CALLS_MAX] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = {1, code};
	struct sigaction sa;
	char *number;

	while ((number = strsep(&numbers, ",")) && program.len < 2 * CALLS_MAX) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(number), 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = refuse;
	sa.sa_flags = SA_SIGINFO;
	if (action == SECCOMP_RET_TRAP && sigaction(SIGSYS, &sa, NULL))
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(
		SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
}

static void say(const char *line)
{
	char c;

	write(STDOUT_FILENO, line, strlen(line));
	write(STDOUT_FILENO, "\n", 1);
	while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n')
		;
}

static void record(void)
{
	for (int i = 0; i < 100; i++)
		kymo_event(sandbox, event, kymo_i32(i, i));
}

static pthread_barrier_t has_started;

static void *wait_for_main(void *main_thread)
{
	pthread_barrier_wait(&has_started);
	pthread_join(*(pthread_t *)main_thread, NULL);
	write(STDOUT_FILENO, "last\n", 5);
	return NULL;
}

static void start_last(pthread_t main_thread)
{
	static pthread_t self;
	pthread_t thread;

	self = main_thread;
	pthread_barrier_init(&has_started, NULL, 2);
	if (pthread_create(&thread, NULL, wait_for_main, &self))
		exit(3);
	pthread_barrier_wait(&has_started);
}

#define THREADS 100
static pthread_barrier_t all_have_recorded;

static void *work(void *arg)
{
	kymo_event(sandbox, thread);
	pthread_barrier_wait(&all_have_recorded);
	return arg;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&all_have_recorded, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			exit(3);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	char text[64];
	int status = 0;
	pid_t pid;
	bool threads = argc == 5 && !strcmp(argv[4], "threads");
	bool leave = argc == 5 && !strcmp(argv[4], "leave");

	if (argc == 5 && !threads && !leave && strcmp(argv[4], "executed")) {
		if (take_away(argv[1], action_of(argv[2])))
			return 77;
		if (!strcmp(argv[4], "exec"))
			unsetenv("KYMO_OFF");
		argv[4] = (char *)"executed";
		execv("/proc/self/exe", argv);
		return 77;
	}
	if (leave)
		start_last(pthread_self());
	say("ready");
	if ((argc != 5 || threads || leave) && take_away(argv[1], action_of(argv[2])))
		return 77;
	say("filtered");
	if (threads)
		run_threads();
	record();
	pid = fork();
	if (!pid) {
		record();
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = -1;
	snprintf(text, sizeof(text), "child %d", status);
	say(text);
	if (argc > 3 && strcmp(argv[3], "-") && !dlopen(argv[3], RTLD_NOW))
		say("no plug-in");
	record();
	say("done");
	if (leave)
		pthread_exit(NULL);
	_exit(5);
}
