/* SPDX-License-Identifier: MIT */
/* The directory of a user's daemon and its sockets: shared by daemons, command line and tracer. */
#ifndef BASE_RUNDIR_H
#define BASE_RUNDIR_H

#include <sys/types.h>

#include "base/util.h"

/*
 * Writes the run directory of the caller, whose user is uid: KYMO_RUNDIR, else /run/kymo for root
 * and $XDG_RUNTIME_DIR/kymo or $HOME/.kymo for others. Ignores the environment in a setuid program.
 * Allocates nothing. Returns 0; -ENAMETOOLONG; -ENOENT if the environment has none of these.
 */
int ky_rundir(uid_t uid, char *buf, size_t size);
/*
 * Returns whether a killed daemon has left sessions there, which continue without it. Not for
 * applications.
 */
bool ky_rundir_has_sessions(uid_t uid);
/* Returns whether a service manager runs the daemon there, or is about to restart it. */
bool ky_rundir_is_managed(uid_t uid);

#endif
