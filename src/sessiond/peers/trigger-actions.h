/* SPDX-License-Identifier: MIT */
/*
 * Firing a trigger, and its actions: a snapshot, a step of the session, a rotation, a command.
 * Results come later, as messages (trigger-messages.h).
 */
#ifndef SESSIOND_PEERS_TRIGGER_ACTIONS_H
#define SESSIOND_PEERS_TRIGGER_ACTIONS_H

#include "sessiond/peers/trigger-list.h"

#define COMMANDS_MAX 16u /* commands that run at one time */

struct env;
struct session;

/* Fires the trigger, if its rate allows it: a message and the actions. */
void trigger_fire(struct trigger *t, const char *fmt, ...) KY_PRINTF(2, 3);
/* Returns whether the trigger's rate allows it to fire now. */
bool trigger_may_fire(const struct trigger *t);
/* Adds to, or removes from, the list of snapshots that the trigger keeps, as kept.h says. */
int trigger_keep(struct trigger *t, const char *output);
void trigger_forget_kept(struct trigger *t, uint64_t n_before, uint64_t n);
/* Handles SIGCHLD: forgets commands that have ended. */
void triggers_reap(struct env *e);
/* Reports what is under way for a session that is freed next. */
void trigger_actions_abandon(const struct session *s);

#endif
