/* SPDX-License-Identifier: MIT */
/*
 * The sessions that the system's daemon makes when it starts: those in *.json of a directory. `kymo
 * load --missing` reads them, as for any user, and connects like any client. So it makes no session
 * twice, and its messages are lines of the daemon's log.
 */
#ifndef SESSIOND_PRESET_H
#define SESSIOND_PRESET_H

#include "sessiond/model/env.h"

#define PRESET_DIRECTORY KYMO_CONFDIR "/sessions.d"

/*
 * Starts to load a directory. NULL: PRESET_DIRECTORY if this is the system's daemon and it exists;
 * "": none. Logs a failure.
 */
void preset_load(const struct env *e, const char *dir);
/* Handles SIGCHLD. */
void preset_reap(void);

#endif
