/* SPDX-License-Identifier: MIT */
/*
 * Triggers of sessions: watches their conditions, and carries out their actions (docs/triggers.md).
 *
 * Conditions about amounts are compared every TRIGGER_LOOK_NS while the session records, with
 * counts that the daemon requests from the consumer, or reads in the buffers. Others are reported
 * when they happen. A condition about an amount fires when it becomes true, and again after it was
 * false; `discarded` fires again when more events were discarded.
 *
 * Each firing, and each result of an action, is a message, which clients can wait for (kymo watch).
 */
#ifndef SESSIOND_PEERS_TRIGGERS_H
#define SESSIOND_PEERS_TRIGGERS_H

#include "sessiond/peers/trigger-list.h"

#define USER_MESSAGES_MAX 256u /* of one user that are kept */
#define COMMANDS_MAX	  16u  /* that run at one time */

struct death;
struct env;
struct session;

enum message_kind {
	MESSAGE_FIRED,
	MESSAGE_SNAPSHOT, /* was written */
	MESSAGE_FAILED,	  /* an action, or the snapshot */
};

struct message {
	struct ky_list node; /* in peers->messages, oldest first */
	uint64_t number;     /* from 1, in the order of time */
	enum message_kind kind;
	uid_t uid;   /* the session's owner */
	uint64_t ns; /* since 1970 */
	char *session, *trigger, *when;
	char *text;   /* what happened */
	char *output; /* of the snapshot, or "" */
	uint64_t n_fired, n_left_out;
};

/* Fires the trigger, if its rate allows it: a message and the actions. */
void trigger_fire(struct trigger *t, const char *fmt, ...) KY_PRINTF(2, 3);
/* Returns whether the trigger's rate allows it to fire now. */
bool trigger_may_fire(const struct trigger *t);

void triggers_init(struct triggers *t, struct session *s);
void triggers_deinit(struct triggers *t);
/*
 * Adds a trigger, and takes the spec's contents. Returns 0, -EEXIST if the session has one of this
 * name, -EDQUOT at TRIGGERS_MAX or USER_TRIGGERS_MAX, or -ENOMEM. After an error the caller still
 * owns the contents.
 */
int trigger_add(struct session *s, struct trigger_spec *spec);
struct trigger *trigger_find(const struct session *s, const char *name);
void trigger_remove(struct trigger *t);
/* Adds to, or removes from, the list of snapshots that the trigger keeps, as kept.h says. */
int trigger_keep(struct trigger *t, const char *output);
void trigger_forget_kept(struct trigger *t, uint64_t n_before, uint64_t n);
/* Returns why the session cannot have such a trigger, or NULL. */
const char *trigger_refusal(const struct session *s, const struct trigger_spec *spec);

/* Reports: a program of the session died; a chunk was archived; the session's state changed. */
void triggers_program_died(struct session *s, const struct death *d);
void triggers_rotated(struct session *s);
void triggers_session_state(struct session *s);
/* Handles SIGCHLD: forgets commands that have ended. */
void triggers_reap(struct env *e);

void messages_free(struct env *e);

#endif
