/* SPDX-License-Identifier: MIT */
/*
 * Removes what dead daemons have left in tracefs: instances "kymo-D-C", "kymo-D-C-tasks", and the
 * probes of groups "kymo_D_C". An instance whose directory another process has locked is alive, as
 * is what belongs to it.
 */
#ifndef SESSIOND_KERNEL_SWEEP_H
#define SESSIOND_KERNEL_SWEEP_H

#include "sessiond/kernel/tracefs.h"

/* Returns the number of instances that it removed, or -errno. */
int tracefs_sweep(const struct tracefs *t);

#endif
