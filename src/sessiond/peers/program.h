/* SPDX-License-Identifier: MIT */
/* Finds the programs that the session daemon starts. */
#ifndef SESSIOND_PEERS_PROGRAM_H
#define SESSIOND_PEERS_PROGRAM_H

#include <stddef.h>

/*
 * Finds the path of kymo-NAME. If $KYMO_LIBEXECDIR is set, searches only there. Else searches
 * beside the session daemon, in a build's directory NAME beside the daemon's own, below its
 * installation, and in the configured libexec directory. Returns 0 or -ENOENT.
 */
int program_find(const char *name, char *buf, size_t size);

#endif
