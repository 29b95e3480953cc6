/* SPDX-License-Identifier: MIT */
/*
 * Limits what a consumer may do after it has started, in case that an attacker takes it over.
 *
 * The consumer reads memory that applications write, and runs as the session's owner, which may be
 * root. It needs few system calls, no other programs, and one directory. A recovery also needs the
 * directory of the buffers, whose files any user may have made.
 *
 * If the kernel lacks one of the limits, the consumer works without it and logs a debug message.
 */
#ifndef CONSUMERD_CONFINE_H
#define CONSUMERD_CONFINE_H

#include <stddef.h>

/*
 * Confines the process from now on: it can write, make and remove files only below these
 * directories (-1: none), and connect to local sockets. Files that are open stay writable.
 */
void confine(const int *dirs, size_t n);

#endif
