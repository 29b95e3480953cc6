/* SPDX-License-Identifier: MIT */
/*
 * urgent N: a child sends this process each signal that programs may wait for, N times, one at a
 * time; not SIGSYS, which only the kernel sends. The process has blocked them all, and takes them
 * by signalfd. It prints "lost SIGNAL", and exits with 1, if one does not arrive.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define PATIENCE_MS 10000

static int next_signal(int sig)
{
	do
		sig++;
	while (sig == SIGKILL || sig == SIGSTOP || sig == SIGSYS || (sig > 31 && sig < SIGRTMIN));
	return sig;
}

static void send_all(pid_t to, int n, int taken)
{
	char byte;

	for (int i = 0; i < n; i++)
		for (int sig = 1; sig <= SIGRTMAX; sig = next_signal(sig))
			if (kill(to, sig) < 0 || read(taken, &byte, 1) != 1)
				_exit(1);
	_exit(0);
}

static int take_all(int fd, int n, int taken)
{
	struct signalfd_siginfo info;
	struct pollfd p = {fd, POLLIN, 0};

	for (int i = 0; i < n; i++)
		for (int sig = 1; sig <= SIGRTMAX; sig = next_signal(sig)) {
			if (poll(&p, 1, PATIENCE_MS) != 1 ||
				read(fd, &info, sizeof(info)) != sizeof(info) ||
				(int)info.ssi_signo != sig) {
				printf("lost %d\n", sig);
				return 1;
			}
			kymo_event(urgent, taken, kymo_i32(sig, sig));
			if (write(taken, "", 1) != 1)
				return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, taken[2];
	pid_t parent = getpid(), child;
	sigset_t all;
	int r;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (pipe(taken) < 0)
		return 1;
	child = fork();
	if (!child && close(taken[1]) == 0)
		send_all(parent, n, taken[0]);
	r = take_all(signalfd(-1, &all, SFD_NONBLOCK), n, taken[1]);
	kill(child, SIGKILL);
	return r;
}
