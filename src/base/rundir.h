/* SPDX-License-Identifier: MIT */
/*
 * Where the daemon of a user has its sockets: shared by daemons, command line and tracer.
 */
#ifndef BASE_RUNDIR_H
#define BASE_RUNDIR_H

#include <sys/types.h>

#include "base/util.h"

/*
 * The run directory of the caller, who is uid: KYMO_RUNDIR, else /run/kymo for root and $XDG_RUNTIME_DIR/kymo
 * or $HOME/.kymo for others. The environment is ignored in a setuid program. Allocates nothing. 0;
 * -ENAMETOOLONG; -ENOENT when nothing in the environment tells.
 */
int ky_rundir(uid_t uid, char *buf, size_t size);
/* Returns whether a daemon that was killed has left sessions there, which go on without it. Not for traced programs. */
bool ky_rundir_has_sessions(uid_t uid);

#endif
