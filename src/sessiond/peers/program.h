/* SPDX-License-Identifier: MIT */
/* Finds the programs that the session daemon starts. */
#ifndef SESSIOND_PEERS_PROGRAM_H
#define SESSIOND_PEERS_PROGRAM_H

#include <stddef.h>

/*
 * The path of kymo-NAME: in $KYMO_LIBEXECDIR and nowhere else if that is set; else beside the session daemon, in a build's
 * directory NAME beside its own, below its installation, where it was to be installed. 0 or -ENOENT.
 */
int program_find(const char *name, char *buf, size_t size);

#endif
