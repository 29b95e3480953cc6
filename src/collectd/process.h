/* SPDX-License-Identifier: MIT */
/* What /proc tells of a process's place among the control groups. */
#ifndef COLLECTD_PROCESS_H
#define COLLECTD_PROCESS_H

#include "base/util.h"

#define CGROUP_MAX 1024

/*
 * Its control group: the path in the hierarchy where it is deepest (there is but one hierarchy in version 2). "": it is in
 * none, or has gone.
 */
void process_cgroup(pid_t pid, char path[CGROUP_MAX]);

#endif
