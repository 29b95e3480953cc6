/* SPDX-License-Identifier: MIT */
/*
 * Finds what dead daemons have left in tracefs: instances "kymo-D-C", "kymo-D-C-tasks", and the
 * probes of groups "kymo_D_C". An instance whose directory another process has locked is alive, as
 * is what belongs to it.
 */
#ifndef SESSIOND_KERNEL_SWEEP_H
#define SESSIOND_KERNEL_SWEEP_H

#include "sessiond/kernel/set.h"

/* Adds them to the removals. Returns the number of instances, or -errno. */
int tracefs_sweep(struct kernel *k);

#endif
