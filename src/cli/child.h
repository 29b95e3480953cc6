/* SPDX-License-Identifier: MIT */
/*
 * Runs the command of `kymo record` as if the shell had started it itself: same process group, same
 * terminal, same descriptors, same signal dispositions.
 *
 * The signals that matter are blocked for the whole recording and taken one by one while the
 * command runs, so that none of them ends us before the trace is complete. What the terminal sends
 * reaches the command by itself; what another process sends to us is passed on.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/util.h"

/* Descriptors 0 to 2 that are closed stay closed for the command, but ours must not get there. */
void child_occupy_standard_files(void);

struct child_signals {
	sigset_t held, before;	     /* signals we hold back; the mask we were started with */
	struct sigaction chld, pipe; /* dispositions of SIGCHLD and SIGPIPE we were started with */
};

void child_signals_hold(struct child_signals *s);
/* A signal that asks us to end and has come while held; 0 for none. It stays pending. */
int child_signals_pending(const struct child_signals *s);
/* Ends this process by the signal, without a core of our own; returns if that cannot be. */
void child_signals_die(int signal);

struct child {
	pid_t pid;
	pid_t other; /* a child of ours whose end is to be noticed meanwhile; becomes -1 with it */
	int other_status;
};

/*
 * Starts argv (argv[0] is looked for in PATH) with our environment. Returns 0 once it runs, or the
 * -errno of fork or exec.
 */
int child_start(struct child *c, const struct child_signals *s, char *const *argv);
/* Until it ends; returns its wait status. */
int child_wait(struct child *c, const struct child_signals *s);

#endif
