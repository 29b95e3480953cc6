/* SPDX-License-Identifier: MIT */
/*
 * The removal of instances and their probes. The kernel takes tens of milliseconds for each probe,
 * so they are removed in pieces, between which the daemon serves others; and an instance cannot be
 * removed while a process has its files open.
 */
#ifndef SESSIOND_KERNEL_REMOVAL_H
#define SESSIOND_KERNEL_REMOVAL_H

#include "sessiond/kernel/set.h"

void removals_init(struct kernel *k);
/* Takes the instances: ends their recording, and removes them, at once if that takes no time. */
void removal_begin(struct kernel *k, struct instance *main, struct instance *tasks);
/* Removes all that is left, however long it takes. */
void removals_deinit(struct kernel *k);

#endif
