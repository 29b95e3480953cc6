/* SPDX-License-Identifier: MIT */
/*
 * Starts the daemon: in the foreground, or in the background by a launcher. The launcher exits when
 * the daemon is ready or has failed. This part also reports the daemon's readiness.
 *
 * A daemon in the background has a guard as its parent. If a signal kills the daemon while there
 * are sessions, the guard starts the successor at once. So applications that start then are
 * recorded, although nobody types a command.
 *
 * 	command --> launcher --> guard --> daemon
 */
#ifndef SESSIOND_LAUNCH_H
#define SESSIOND_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct launch {
	bool background; /* fork; the launcher waits */
	bool detach;	 /* and when ready, leave the terminal: log to a file */
	bool sig_parent; /* SIGUSR1 to the process that started the launcher */
	bool restarted;	 /* this is the successor of a daemon that was killed */
	pid_t parent;
	bool *ready;  /* shared with the guard; NULL: there is none */
	int ready_fd; /* to the launcher; -1: none */
	int log_fd;   /* -1: none */
};

/*
 * Forks if that is wanted. Returns in the daemon only: the launcher exits, with 0 once
 * launch_ready() was called, and with 1 when the daemon died before.
 */
int launch_begin(struct launch *l);
/*
 * Starts the log at log_path, once there is a run directory. A daemon that will detach logs there
 * from now on, and until then on stderr as well.
 */
void launch_log(struct launch *l, const char *log_path);
/* Notifies launcher, parent and service manager that the daemon serves. */
void launch_ready(struct launch *l);

#endif
