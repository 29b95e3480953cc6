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
 * Returns whether the stat file of a process, "NUMBER (NAME) STATE ...", has this end of its name,
 * and this state: "name) R", or ") T" for any name. A name may contain anything, parentheses too.
 */
bool proc_state_is(pid_t pid, const char *name_and_state);
/*
 * Returns whether the process cannot run: it is stopped, stopped by a debugger, or frozen with its
 * control group.
 */
bool proc_is_held(pid_t pid);

/* State of a thread, and what the kernel has counted of it (schedstat). */
struct proc_run {
	pid_t tid; /* 0: not known */
	bool runnable;
	bool waits_for_disk; /* or for memory on a disk: it cannot be interrupted */
	uint64_t run_ns,
		delay_ns; /* time on a CPU; time that it waited for one, before it got it */
	uint64_t n_runs;  /* how often it got one */
};

/* The threads of libkymo for whose replies the daemon waits: the listener, and the state dump's. */
#define PROC_RUNS 2

/*
 * Finds these threads among the first threads of a process, and reads their states. tid is 0 if one
 * is not there. Decrements *n_left for each thread that it examines, and examines no more.
 */
void proc_run_find(struct proc_run ret_runs[PROC_RUNS], pid_t pid, unsigned *n_left);
/*
 * Returns whether one of the threads has waited for a CPU since the state `then`, which was
 * elapsed_ns ago: runnable then and now and never on a CPU in between; or for most of the time, as
 * the kernel has measured. Or it waits for the disk now. A thread that spins is not starved, nor
 * one that sleeps and is runnable now and then.
 */
bool proc_run_was_starved(const struct proc_run then[PROC_RUNS], pid_t pid, uint64_t elapsed_ns);

/*
 * Returns the wait status of a process whose pidfd is readable, or KY_ENDED_UNKNOWN (abi/ended.h).
 * Its parent may have reaped it: then Linux 6.15 and later still report the status.
 */
int proc_wait_status(int pidfd, pid_t pid);

/* "/proc"; tests have a directory of their own. */
extern const char *proc_dir;

#endif
