/* SPDX-License-Identifier: MIT */
/*
 * Limits what a consumer may do after it has started, in case that an attacker takes it over.
 *
 * The consumer reads memory that applications write, and runs as the session's owner, which may be
 * root. It needs few system calls, no other programs, and one directory. A recovery also needs the
 * directory of the buffers, whose files any user may have made.
 *
 * The kernel enforces the limits as far as it can: seccomp, Landlock (Linux 5.19). If the kernel
 * lacks one of them, the consumer works without it and logs a debug message.
 */
#ifndef CONSUMERD_CONFINE_H
#define CONSUMERD_CONFINE_H

#include <stddef.h>

/*
 * Confines the process from now on.
 *
 * The process can write, make and remove files only below these directories (-1: none). Files that
 * are open stay writable. System calls that confine.c does not list fail with ENOSYS. Among them
 * are those that execute, trace or signal other processes, change credentials or mounts, open
 * sockets other than local ones, or map executable memory.
 */
void confine(const int *dirs, size_t n);

#endif
