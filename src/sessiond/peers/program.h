/* SPDX-License-Identifier: MIT */
/* Finds and starts the helper programs of the session daemon. */
#ifndef SESSIOND_PEERS_PROGRAM_H
#define SESSIOND_PEERS_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Finds the path of kymo-NAME. If $KYMO_LIBEXECDIR is set, searches only there. Else searches
 * beside the session daemon, in a build's directory NAME beside the daemon's own, below its
 * installation, and in the configured libexec directory. Returns 0 or -ENOENT.
 */
int program_find(const char *name, char *buf, size_t size);
/*
 * Starts a helper with `input` as its standard input; other descriptors are closed. It has its own
 * session, so that Ctrl-C at the daemon's terminal does not end it before the daemon. If it is an
 * application, it connects to the daemon of this run directory, and waits for it. Returns its
 * process number or -errno.
 */
pid_t program_start(const char *path, char *const argv[], int input, const char *rundir);

#endif
