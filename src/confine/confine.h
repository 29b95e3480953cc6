/* SPDX-License-Identifier: MIT */
/*
 * Limits what a process may do, in case that an attacker takes it over: for processes that read
 * what others wrote and need few system calls, no other programs, and some directories. Consumers,
 * `kymo live` and `kymo receive` use it.
 *
 * The kernel enforces the limits as far as it can: seccomp, Landlock (Linux 5.19).
 */
#ifndef CONFINE_CONFINE_H
#define CONFINE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

struct ky_confinement {
	const int *dirs; /* borrowed; -1: none */
	size_t n_dirs;
	/*
	 * true: below dirs it can write, make and remove files, and it can read everywhere.
	 * false: below dirs it can read, and it can write nowhere.
	 */
	bool writes;
	bool connects; /* may make local sockets and connect them */
	bool accepts;  /* may accept connections */
};

/*
 * Confines the process to files, from now on; files that are open stay open. Returns 0, or -errno:
 * then everything stays allowed.
 */
int ky_confine_files(const struct ky_confinement *c);
/*
 * Confines the process to system calls, from now on; it must not fork any more. Calls that
 * confine.c does not list fail with ENOSYS. Among them are those that execute, trace or signal
 * other processes, change limits of these, change credentials or mounts, open sockets other than
 * local ones, or map executable memory. Returns as above.
 */
int ky_confine_calls(const struct ky_confinement *c);

#endif
