/* SPDX-License-Identifier: MIT */
/*
 * The run directory of a private daemon, below $XDG_RUNTIME_DIR, $TMPDIR or /tmp. When a new one is
 * made, those of this user's killed daemons are removed. Programs of all users can connect to
 * root's daemon, because a server that root starts becomes another user.
 *
 * Invariant: the maker locks (flock) the directory as soon as it exists, until it is removed. The
 * daemon locks the lock file in it as long as it lives. So if nobody has locked a directory, its
 * maker and its daemon are dead; or it has just been made. In the second case the maker finds, once
 * it has the lock, that the directory was removed, and makes another.
 */
#ifndef CLI_PRIVATE_RUNDIR_H
#define CLI_PRIVATE_RUNDIR_H

#include <limits.h>

#include "base/util.h"

#define PRIVATE_RUNDIR_LOG "log" /* the daemon's messages */

struct private_rundir {
	char path[PATH_MAX]; /* "" when there is none */
	int fd;		     /* locked; -1 */
};

/*
 * Returns the directories in which it can be made, the best one first, for i from 0 on; NULL: there
 * are no more. A directory that is not absolute is not used.
 */
const char *private_rundir_parent(size_t i);
/* Makes and locks the directory. Returns 0 or -errno. */
int private_rundir_make(struct private_rundir *r);
/* Removes the directory with the files of daemon and maker. Other files stay. */
void private_rundir_remove(struct private_rundir *r);

#endif
