/* SPDX-License-Identifier: MIT */
/*
 * The end of a program: an event of the collector, and, if a signal ended it, a line in the report
 * of each session that tracked it.
 */
#ifndef SESSIOND_PEERS_ENDED_H
#define SESSIOND_PEERS_ENDED_H

#include "sessiond/peers/process.h"

#define DEATHS_MAX 8u /* that a session remembers: the last ones */

/* A program that a signal ended. */
struct death {
	pid_t pid;
	uint32_t vpid; /* in its own PID namespace, as contexts have it */
	int signal;
	bool dumped; /* core */
	uint64_t ns; /* since 1970 */
	char name[sizeof(((struct definer *)0)->name)];
};

struct deaths {
	uint64_t n; /* since the session was created */
	struct death last[DEATHS_MAX];
};

/* Handles the end of a process that was connected. Its pidfd is readable. */
void program_ended(const struct process *p);

#endif
