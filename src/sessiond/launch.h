/* SPDX-License-Identifier: MIT */
/*
 * How the daemon is started: in the foreground, or by a launcher that forks it and ends when it is
 * ready (or has failed); and who is told of its readiness.
 */
#ifndef SESSIOND_LAUNCH_H
#define SESSIOND_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct launch {
	bool background; /* fork; the launcher waits */
	bool detach;	 /* and when ready, leave the terminal: log to a file */
	bool sig_parent; /* SIGUSR1 to whoever started the launcher */
	pid_t parent;
	int ready_fd; /* to the launcher; -1: none */
	int log_fd;   /* -1: none */
};

/*
 * Forks if that is wanted. Returns in the daemon only: the launcher exits, with 0 once
 * launch_ready() was called, and with 1 when the daemon died before.
 */
int launch_begin(struct launch *l);
/* There is a run directory: log_path is where a daemon that will detach logs from now on, until then on stderr as well. */
void launch_log(struct launch *l, const char *log_path);
/* The daemon serves: tells launcher, parent and service manager. */
void launch_ready(struct launch *l);

#endif
