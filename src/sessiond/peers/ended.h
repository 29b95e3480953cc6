/* SPDX-License-Identifier: MIT */
/*
 * The end of a program: an event of the collector, and, if a signal ended it, a line in the report
 * of each session that tracked it.
 */
#ifndef SESSIOND_PEERS_ENDED_H
#define SESSIOND_PEERS_ENDED_H

struct process;

/* Handles the end of a process that was connected. Its pidfd is readable. */
void program_ended(const struct process *p);

#endif
