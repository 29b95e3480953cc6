/* SPDX-License-Identifier: MIT */
/*
 * The run directory of a private daemon, below $XDG_RUNTIME_DIR, $TMPDIR or /tmp: made, removed, and, of others of this user's that
 * were killed, swept up where a new one is made.
 *
 * Invariant: a directory is locked (flock) from the moment that it is known to be there until it is removed, by its maker, and the
 * lock file in it as long as its daemon lives. So of one that nobody has locked, maker and daemon are dead; or it has just been made, and its
 * maker finds it gone when it has the lock, and makes another.
 */
#ifndef CLI_PRIVATE_RUNDIR_H
#define CLI_PRIVATE_RUNDIR_H

#include <limits.h>

#include "base/util.h"

#define PRIVATE_RUNDIR_LOG "log" /* what the daemon says */

struct private_rundir {
	char path[PATH_MAX]; /* "" when there is none */
	int fd;		     /* locked; -1 */
};

/* 0 or -errno. */
int private_rundir_make(struct private_rundir *r);
/* With all that daemon and maker keep there; what else is there stays. */
void private_rundir_remove(struct private_rundir *r);

#endif
