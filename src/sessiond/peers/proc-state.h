/* SPDX-License-Identifier: MIT */
/*
 * The state of processes and threads, from /proc.
 */
#ifndef SESSIOND_PEERS_PROC_STATE_H
#define SESSIOND_PEERS_PROC_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns whether a stat file of /proc, "NUMBER (NAME) STATE ...", has this end of its name, and
 * this state: "name) R", or ") T" for any name. A name may contain anything, parentheses too.
 */
bool proc_file_state_is(const char *path, const char *name_and_state);
/* Returns the same for the stat file of a process. */
bool proc_state_is(pid_t pid, const char *name_and_state);
/*
 * Returns whether the process cannot run: it is stopped, stopped by a debugger, or frozen with its
 * control group.
 */
bool proc_is_held(pid_t pid);

/* The CPU time and state of a thread. */
struct proc_run {
	pid_t tid; /* 0: not known */
	bool runnable;
	uint64_t run_ns;
};

/*
 * Finds the thread of libkymo's listener among the first threads of a process, and reads its state.
 * tid is 0 if it is not there. Decrements *n_left for each file that it opens, and opens no more
 * than *n_left files.
 */
void proc_run_find(struct proc_run *ret_run, pid_t pid, unsigned *n_left);
/* Reads the thread run->tid again. False if that is not possible. */
bool proc_run_read(struct proc_run *run, pid_t pid);

/* "/proc"; tests have a directory of their own. */
extern const char *proc_dir;

#endif
