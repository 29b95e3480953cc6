/* SPDX-License-Identifier: MIT */
/*
 * waits EVENTS: emits waits:event { n } EVENTS times, and forks whenever SIGUSR1 arrives. The child
 * continues after the event that its parent was recording. Each process prints how many events it
 * emitted; the last line is that of the first process.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

static volatile int n_emitted;

static void fork_here(int sig)
{
	(void)sig;
	if (!fork())
		n_emitted = -1; /* the event that was being recorded is the parent's */
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = fork_here};
	int n = argc > 1 ? atoi(argv[1]) : 0;

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < n; i++) {
		kymo_event(waits, event, kymo_i32(n, i));
		n_emitted++;
	}
	while (wait(NULL) > 0)
		;
	printf("%d\n", n_emitted);
	return 0;
}
