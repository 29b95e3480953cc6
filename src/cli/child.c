/* SPDX-License-Identifier: MIT */
#include "cli/child.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static void close_descriptors(int first, int last)
{
	if (first <= last)
		syscall(SYS_close_range, first, last, 0);
}

void child_close_others(int first, int a, int b)
{
	close_descriptors(first, KY_MIN(a, b) - 1);
	close_descriptors(KY_MIN(a, b) + 1, KY_MAX(a, b) - 1);
	close_descriptors(KY_MAX(a, b) + 1, INT_MAX);
}

void child_signals_hold(struct child_signals *s)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigemptyset(&s->held);
	sigaddset(&s->held, SIGCHLD);
	for (size_t i = 0; i < KY_ARRAY_SIZE(forwarded); i++)
		sigaddset(&s->held, forwarded[i]);
	sigprocmask(SIG_BLOCK, &s->held, &s->before);
	/* nobody may be reading what we say at the end */
	sigaction(SIGPIPE, &ignore, &s->pipe);
}

int child_signals_pending(const struct child_signals *s)
{
	sigset_t pending;

	if (sigpending(&pending) < 0)
		return 0;
	for (size_t i = 0; i < KY_ARRAY_SIZE(forwarded); i++) {
		if (sigismember(&pending, forwarded[i]) && !sigismember(&s->before, forwarded[i]))
			return forwarded[i];
	}
	return 0;
}

void child_signals_die(int signal)
{
	struct sigaction normal = {.sa_handler = SIG_DFL};
	sigset_t set;

	prctl(PR_SET_DUMPABLE, 0);
	sigaction(signal, &normal, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* In the new process. `report` carries why exec failed; it closes when exec does not. */
static void exec_command(const struct child_signals *s, char *const *argv, int report)
{
	int error;

	ky_ignore_children_again();
	sigaction(SIGPIPE, &s->pipe, NULL);
	sigprocmask(SIG_SETMASK, &s->before, NULL);
	execvp(argv[0], argv);
	error = errno;
	_exit(write(report, &error, sizeof(error)) < 0 ? 126 : 127);
}

/* In the new process: waits until the other end of the pipe is closed. */
static void await_begin(int hold)
{
	char c;

	while (read(hold, &c, sizeof(c)) < 0 && errno == EINTR)
		;
	close(hold);
}

/* Waits until the new program runs. Returns 0, or why it does not. */
static int exec_result(int report)
{
	int error = 0;
	ssize_t n;

	do {
		n = read(report, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(error) ? -error : 0;
}

int child_start(struct child *c, const struct child_signals *s, char *const *argv,
	void (*begin)(void *arg, pid_t pid), void *arg)
{
	int report[2], hold[2], r;

	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(hold, O_CLOEXEC) < 0) {
		r = -errno;
		close(report[0]);
		close(report[1]);
		return r;
	}
	c->pid = fork();
	if (c->pid == 0) {
		close(hold[1]);
		await_begin(hold[0]);
		exec_command(s, argv, report[1]);
	}
	r = c->pid < 0 ? -errno : 0;
	close(report[1]);
	close(hold[0]);
	if (!r && begin)
		begin(arg, c->pid);
	close(hold[1]);
	if (!r)
		r = exec_result(report[0]);
	close(report[0]);
	if (r && c->pid > 0)
		waitpid(c->pid, NULL, 0);
	return r;
}

/* True if a shell waits for our process group to give the terminal back. */
static bool in_foreground(void)
{
	_cleanup_close_ int tty = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

/* The command stopped itself: its shell should see that, and we are what its shell sees. */
static void stop_too(pid_t pid)
{
	if (!in_foreground())
		return;
	raise(SIGSTOP);
	kill(pid, SIGCONT);
}

static void pass_on(pid_t pid, const siginfo_t *info)
{
	/* The kernel sends for the terminal, and then to the whole process group. */
	if (info->si_code != SI_KERNEL)
		kill(pid, info->si_signo);
}

static void look_at_other(struct child *c)
{
	if (c->other > 0 && waitpid(c->other, &c->other_status, WNOHANG) == c->other)
		c->other = -1;
}

int child_wait(struct child *c, const struct child_signals *s)
{
	siginfo_t info;
	int status = 0;
	pid_t pid;

	for (;;) {
		pid = waitpid(c->pid, &status, WNOHANG | WUNTRACED);
		if (pid == c->pid && !WIFSTOPPED(status))
			return status;
		if (pid == c->pid)
			stop_too(c->pid);
		look_at_other(c);
		if (sigwaitinfo(&s->held, &info) > 0 && info.si_signo != SIGCHLD)
			pass_on(c->pid, &info);
	}
}
