/* SPDX-License-Identifier: MIT */
/* Each user's current session: the one that commands without a session's name are about. */
#ifndef SESSIOND_CONTROL_SELECTION_H
#define SESSIOND_CONTROL_SELECTION_H

#include "sessiond/daemon.h"

/* Or NULL. */
struct session *selection_find(const struct daemon *d, uid_t uid);
/* Makes it the user's current session, since `when` (CLOCK_MONOTONIC), unless another one is since later. */
void selection_set(struct daemon *d, uid_t uid, struct session *s, uint64_t when);
void selections_forget(struct daemon *d, const struct session *s);

#endif
