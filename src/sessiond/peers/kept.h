/* SPDX-License-Identifier: MIT */
/*
 * The snapshots of a trigger that keeps the newest ones only (`kymo add-trigger --keep`).
 *
 * They lie where the session's owner wants, so the daemon touches nothing there: a child process
 * becomes the owner, and removes the oldest ones. The journal has the list, so a successor goes on
 * with it.
 */
#ifndef SESSIOND_PEERS_KEPT_H
#define SESSIOND_PEERS_KEPT_H

#include <sys/types.h>

#include "base/util.h"

struct session;
struct trigger_spec;

struct kept {
	char **list; /* directories, oldest first; owned */
	unsigned n;
	uint64_t n_removed;
};

/* Adds a snapshot that was written. Returns 0 or -ENOMEM. */
int kept_add(struct kept *k, const char *output);
/*
 * Forgets the n that follow the first n_before which the list ever had: they were removed. Returns
 * how many of them it still had.
 */
uint64_t kept_forget(struct kept *k, uint64_t n_before, uint64_t n);
void kept_deinit(struct kept *k);
/*
 * Starts the child that becomes the session's owner, and removes what is beyond the trigger's
 * limits. Returns its process number or -errno. Its exit status is the number of snapshots that it
 * removed; KEPT_FAILED: it could not remove the oldest.
 */
#define KEPT_FAILED 255
pid_t kept_limit(const struct kept *k, const struct trigger_spec *spec, const struct session *s);

#endif
