/* SPDX-License-Identifier: MIT */
/*
 * Processes of applications. The daemon watches them to report their ends (ended.h), and to free
 * the slots and ring sets of those that have exited (docs/shm-abi.md, "Slots").
 *
 * A hang-up is no proof of an exit. An application may close its connection and continue to record
 * for a moment, and a forked child keeps the connection of a dead parent open. There are two
 * proofs: the process's pidfd is readable, which means that all its threads have exited; or the
 * process executes another program, which the kernel allows only when no other threads run. So the
 * daemon remembers a process beyond its connections.
 */
#ifndef SESSIOND_PEERS_PROCESS_H
#define SESSIOND_PEERS_PROCESS_H

#include "sessiond/model/contents.h"
#include "svc/loop.h"

struct env;

struct process {
	struct ky_list node; /* in peers->processes until it has ended */
	struct env *env;
	struct user *user; /* referenced */
	pid_t pid;
	uint32_t vpid; /* in its own PID namespace */
	gid_t gid;
	char name[sizeof(((struct definer *)0)->name)];
	uint32_t number; /* in slot words */
	unsigned n_apps; /* its connections; 0: it has exited or closed them */
	int pidfd;
	struct ky_watch end;
	uint64_t image;	      /* another one is another program; 0: cannot be seen */
	struct ky_timer look; /* whether it is another one now */
	unsigned n_looks;
};

/*
 * Returns the process of a connection, for one connection more: that of another connection of the
 * same process, or of a predecessor's set, if there is one. socket: the connection. The caller sets
 * vpid, gid and name. Returns NULL if the process cannot be watched: then its slots stay taken
 * while the session lives, and nobody learns how it ended.
 */
struct process *process_get(
	struct env *e, const struct user *u, pid_t pid, uint32_t number, int socket);
/* That of a process's set, which a predecessor watched: false when it has ended. */
bool process_restore(struct env *e, const struct ring_set *set);
/* A connection has ended. */
void process_hung_up(struct process *p);
struct process *process_free(struct process *p); /* NULL */
/*
 * Stops watching processes without a connection that cannot have a buffer in any session. Called
 * after a session was freed.
 */
void processes_forget(struct env *e);

#endif
