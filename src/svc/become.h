/* SPDX-License-Identifier: MIT */
/* Becoming another user. */
#ifndef SVC_BECOME_H
#define SVC_BECOME_H

#include <sys/types.h>

/*
 * Becomes this user, with the user's groups, for good. Does nothing if the process is this user.
 * Afterwards other processes of the user cannot trace this one (ptrace(2)), unless it executes a
 * program. Returns 0, or -1 with errno.
 */
int ky_become(uid_t uid, gid_t gid);

#endif
