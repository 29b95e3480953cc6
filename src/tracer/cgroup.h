/* SPDX-License-Identifier: MIT */
/* The control group that this process is in. */
#ifndef TRACER_CGROUP_H
#define TRACER_CGROUP_H

#include <stdint.h>

/*
 * Returns the bytes of memory that the process's control group may have, or UINT64_MAX: it has no
 * limit, or none that can be read here. Opens files, and may change errno.
 */
uint64_t tracer_memory_max(void);

#endif
