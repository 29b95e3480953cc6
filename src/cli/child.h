/* SPDX-License-Identifier: MIT */
/*
 * Runs the command of `kymo record` as if the shell had started it itself: same process group, same
 * terminal, same descriptors, same signal dispositions.
 *
 * Kymo blocks the signals that matter for the whole recording, and reads them one by one while the
 * command runs, so that none ends it before the trace is complete. The terminal sends its signals
 * to the command, too. Signals from other processes are passed on.
 */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "base/util.h"

/* Closes all descriptors from `first` on but a and b, which may be the same one. */
void child_close_others(int first, int a, int b);

struct child_signals {
	sigset_t held, before; /* signals that are blocked; the mask at the start */
	struct sigaction pipe; /* disposition of SIGPIPE at the start */
};

/*
 * Blocks SIGCHLD and the signals that are passed on to the command, and ignores SIGPIPE.
 * child_start() gives the command the state from before.
 */
void child_signals_hold(struct child_signals *s);
/* Returns a pending signal that requests our end, or 0. It stays pending. */
int child_signals_pending(const struct child_signals *s);
/* Ends this process by the signal, without a core dump. Returns if that is not possible. */
void child_signals_die(int signal);

struct child {
	pid_t pid;
	pid_t other; /* another child, reaped meanwhile; -1 after its exit */
	int other_status;
};

/*
 * Starts argv with our environment. Looks for argv[0] in PATH. Calls begin, unless it is NULL, when
 * the new process has its number and does not run argv yet. Returns 0 once it runs, or the -errno
 * of fork or exec.
 */
int child_start(struct child *c, const struct child_signals *s, char *const *argv,
	void (*begin)(void *arg, pid_t pid), void *arg);
/* Waits until the command ends. Returns its wait status. */
int child_wait(struct child *c, const struct child_signals *s);

#endif
