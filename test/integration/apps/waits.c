/* SPDX-License-Identifier: MIT */
/*
 * Emits waits:event { n } so often, and forks whenever SIGUSR1 comes: the child goes on behind the event that its parent was
 * recording. Each process prints how many events it emitted; the last line is the first process's.
 *
 *   waits EVENTS
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
		n_emitted = -1; /* the one that was under way is the parent's */
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
