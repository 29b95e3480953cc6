/* SPDX-License-Identifier: MIT */
/*
 * The state of processes and threads, from /proc.
 */
#ifndef SESSIOND_PEERS_PROC_STATE_H
#define SESSIOND_PEERS_PROC_STATE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns whether a stat file of /proc, "NUMBER (NAME) STATE ...", has this end of its name, and this state: "name) R", or
 * ") T" for any name. A name may contain anything, parentheses too.
 */
bool proc_file_state_is(const char *path, const char *name_and_state);
/* Likewise of a process. */
bool proc_state_is(pid_t pid, const char *name_and_state);

#endif
