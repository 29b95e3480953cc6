/* SPDX-License-Identifier: MIT */
/*
 * The removal of instances and their probes: those of sessions that have ended, and those that dead
 * daemons have left. The kernel takes tens of milliseconds for each probe, so they are removed in
 * pieces, between which the daemon serves others; and an instance cannot be removed while a process
 * has its files open.
 */
#ifndef SESSIOND_KERNEL_REMOVAL_H
#define SESSIOND_KERNEL_REMOVAL_H

#include "sessiond/kernel/set.h"

void removals_init(struct kernel *k);
/* Takes the instances, of which one may not exist, and ends their recording. */
void removal_add(struct kernel *k, struct instance *main, struct instance *tasks);
/* Adds the probes of groups of ours that have no instance. instances: the open directory. */
void removal_add_orphans(struct kernel *k, int instances);
/* Removes what was added, at once if that takes no time, else in pieces. */
void removals_run(struct kernel *k);
/* Removes all that is left, however long it takes, but for probes that other programs use. */
void removals_deinit(struct kernel *k);

#endif
