/* SPDX-License-Identifier: MIT */
/*
 * Triggers of sessions (docs/triggers.md). Conditions about amounts are compared repeatedly
 * (trigger-amounts.h), applications decide those about events and spans (firing.h), and others are
 * reported here when they happen. trigger-actions.h carries out the actions.
 */
#ifndef SESSIOND_PEERS_TRIGGERS_H
#define SESSIOND_PEERS_TRIGGERS_H

#include "sessiond/peers/trigger-list.h"

struct death;
struct session;

/* ops: borrowed. */
void triggers_init(struct triggers *t, struct session *s, const struct trigger_ops *ops);
void triggers_deinit(struct triggers *t);
/*
 * Adds a trigger, and takes the spec's contents. Returns 0, -EEXIST if the session has one of this
 * name, -EDQUOT at TRIGGERS_MAX or USER_TRIGGERS_MAX, or -ENOMEM. After an error the caller still
 * owns the contents.
 */
int trigger_add(struct session *s, struct trigger_spec *spec);
void trigger_remove(struct trigger *t);
/* Returns why the session cannot have such a trigger, or NULL. */
const char *trigger_refusal(const struct session *s, const struct trigger_spec *spec);

/* Reports: a program of the session died; a chunk was archived; the session's state changed. */
void triggers_program_died(struct session *s, const struct death *d);
void triggers_rotated(struct session *s);
void triggers_session_state(struct session *s);

#endif
