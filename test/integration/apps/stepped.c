/* SPDX-License-Identifier: MIT */
/*
 * Records 5 events while a debugger executes it in single steps: its parent, which exits with its
 * status, or with 77 if this system does not allow debuggers.
 */
#include <kymo/tracepoint.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(77);
	raise(SIGSTOP);
	for (int i = 0; i < 5; i++)
		kymo_event(stepped, event, kymo_i32(i, i));
	_exit(0);
}

int main(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		record();
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) < 0)
			return 3;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
