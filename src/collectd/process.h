/* SPDX-License-Identifier: MIT */
/* Data in /proc about a process's control group. */
#ifndef COLLECTD_PROCESS_H
#define COLLECTD_PROCESS_H

#include "base/util.h"

#define CGROUP_MAX 1024

/*
 * Reads its control group: the path in the hierarchy where it is deepest (version 2 has only one
 * hierarchy). "": it is in none, or has exited.
 */
void process_cgroup(pid_t pid, char path[CGROUP_MAX]);

#endif
