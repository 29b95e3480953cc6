/* SPDX-License-Identifier: MIT */
/* Each user's current session: the one that commands without a session's name are about. */
#ifndef SESSIOND_CONTROL_SELECTION_H
#define SESSIOND_CONTROL_SELECTION_H

#include <sys/types.h>

#include "sessiond/control/control.h"

/* Or NULL. */
struct session *selection_find(const struct control *k, uid_t uid);
/*
 * Makes s the user's current session, since `when` (CLOCK_MONOTONIC), unless another one became
 * current later.
 */
void selection_set(struct control *k, uid_t uid, struct session *s, uint64_t when);
/* Reports each user's selection of s to the observers again. */
void selections_report(const struct control *k, struct session *s);
void selections_forget(struct control *k, const struct session *s);

#endif
