/* SPDX-License-Identifier: MIT */
/*
 * Many programs with many tracepoints each. crowd N starts N processes with 200 tracepoints each,
 * prints "ready" when all run, and ends them at the end of its standard input. A line on standard
 * input makes each process emit one event.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

#define EVENT(n)                                                                                   \
	case 1##n - 1000:                                                                          \
		kymo_event(crowd, event_##n, kymo_u64(request, i), kymo_string(path, "/usr/bin"),  \
			kymo_i32(status, i));                                                      \
		break;
#define TEN(n)                                                                                     \
	EVENT(n##0)                                                                                \
	EVENT(n##1)                                                                                \
	EVENT(n##2)                                                                                \
	EVENT(n##3)                                                                                \
	EVENT(n##4)                                                                                \
	EVENT(n##5)                                                                                \
	EVENT(n##6)                                                                                \
	EVENT(n##7)                                                                                \
	EVENT(n##8)                                                                                \
	EVENT(n##9)
#define HUNDRED(n)                                                                                 \
	TEN(n##0)                                                                                  \
	TEN(n##1)                                                                                  \
	TEN(n##2)                                                                                  \
	TEN(n##3)                                                                                  \
	TEN(n##4)                                                                                  \
	TEN(n##5)                                                                                  \
	TEN(n##6)                                                                                  \
	TEN(n##7)                                                                                  \
	TEN(n##8)                                                                                  \
	TEN(n##9)

static void emit(int i)
{
	switch (i) {
		HUNDRED(0)
		HUNDRED(1)
	}
}

static void on_usr1(int sig)
{
	emit(sig % 200);
}

static int member(const char *ready_fd)
{
	signal(SIGUSR1, on_usr1);
	if (write(atoi(ready_fd), "", 1) != 1)
		return 1;
	close(atoi(ready_fd));
	for (;;)
		pause();
}

static pid_t start(const char *self, int ready_fd)
{
	pid_t parent = getpid(), pid = fork();
	char text[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	snprintf(text, sizeof(text), "%d", ready_fd);
	execl(self, self, "-", text, (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, fds[2];
	char byte, line[16];
	pid_t *pids;

	if (argc == 3)
		return member(argv[2]);
	pids = calloc((size_t)n + 1, sizeof(*pids));
	if (n < 1 || !pids || pipe(fds))
		return 2;
	for (int i = 0; i < n; i++)
		pids[i] = start(argv[0], fds[1]);
	close(fds[1]);
	for (int i = 0; i < n; i++)
		if (read(fds[0], &byte, 1) != 1)
			return 1;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		for (int i = 0; i < n; i++)
			kill(pids[i], SIGUSR1);
	return 0;
}
