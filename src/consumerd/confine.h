/* SPDX-License-Identifier: MIT */
/*
 * What a consumer may still do after it has begun, in case that somebody takes it over: it reads memory that programs write, and
 * runs as the session's owner, who may be root. It needs few system calls, no other programs, and one directory; when it recovers
 * a trace from files that anybody may have made, the directory of these too.
 *
 * The kernel holds it to that as far as it can: seccomp, Landlock (Linux 5.19). Where that is missing the consumer works
 * without; a debug message says so.
 */
#ifndef CONSUMERD_CONFINE_H
#define CONSUMERD_CONFINE_H

#include <stddef.h>

/*
 * From now on nothing is written, made or removed but below these directories (-1: none), though files that are open stay so; and
 * system calls that are not listed in confine.c fail with ENOSYS: those that execute, trace or signal others, change who
 * we are or what is mounted, open sockets but local ones, or map memory that can be executed.
 */
void confine(const int *dirs, size_t n);

#endif
