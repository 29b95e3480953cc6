/* SPDX-License-Identifier: MIT */
/*
 * Processes whose threads may own slots of threads' rings, or that have ring sets of their own, watched so that these are
 * freed when the process is no more (docs/shm-abi.md, "Slots").
 *
 * A hang-up is no proof: a program may close its connection and go on recording for a moment, and a forked child keeps the
 * connection of a dead parent open. What proves it: the process's pidfd is readable, which it is when all its threads are
 * gone; or the process executes another program, which the kernel allows to nobody while other threads run. So a process
 * is remembered beyond its connections.
 */
#ifndef SESSIOND_PEERS_PROCESS_H
#define SESSIOND_PEERS_PROCESS_H

#include "sessiond/model/contents.h"
#include "svc/loop.h"

struct env;

struct process {
	struct ky_list node; /* in peers->processes */
	struct env *env;
	struct user *user; /* referenced */
	pid_t pid;
	uint32_t number; /* in slot words */
	unsigned n_apps; /* its connections; 0: it has exited or closed them */
	int pidfd;
	struct ky_watch end;
	uint64_t image;	      /* another one is another program; 0: cannot be seen */
	struct ky_timer look; /* whether it is another one now */
	unsigned n_looks;
};

/*
 * The process at the other end of `socket`, which gave itself this number; of another connection of the same, if there is
 * one. NULL when it cannot be watched: then its slots stay taken while the session lives.
 */
struct process *process_get(struct env *e, struct user *u, int socket, pid_t pid, uint32_t number);
/* That of a process's set, which a predecessor watched: false when it has ended. */
bool process_restore(struct env *e, const struct ring_set *set);
/* A connection has ended. */
void process_hung_up(struct process *p);
struct process *process_free(struct process *p); /* NULL */
/* A session was freed: stops watching processes without a connection that cannot have a buffer in any other session. */
void processes_forget(struct env *e);

#endif
