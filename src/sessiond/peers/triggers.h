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

#include "sessiond/model/trigger.h"
#include "sessiond/peers/barrier.h"
#include "sessiond/peers/kept.h"

#define TRIGGER_LOOK_NS	  (500 * KY_NS_PER_MS)
#define USER_MESSAGES_MAX 256u /* of one user that are kept */
#define COMMANDS_MAX	  16u  /* that run at one time */

struct death;
struct env;
struct session;

struct trigger {
	struct ky_list node; /* in triggers->list */
	struct session *session;
	struct trigger_spec spec;
	bool is_met;	    /* by the last look */
	uint64_t discarded; /* when it fired last */
	uint64_t window_ns; /* begin of the time for which its rate is limited */
	uint64_t n_in_window;
	uint64_t n_fired, n_left_out; /* n_left_out: because of the rate */
	/* of a condition that applications decide: when it was seen to fire, not recorded yet */
	uint64_t unrecorded_ns;
	struct kept kept; /* if it keeps the newest snapshots only */
};

/* Of one session. */
struct triggers {
	struct session *session;
	struct ky_list list;
	unsigned n;
	struct ky_timer timer;
	struct barrier answer; /* of the consumer */
	struct op answered;
	bool asked; /* the consumer: it was there */
	/* of the last look; looked_ns 0: there was none since the session started */
	uint64_t looked_ns, events, bytes;
	/* of conditions that applications decide (firing.h) */
	struct ky_timer firing;
	unsigned n_copying;	 /* snapshots that copy the frozen sets */
	uint64_t n_missed_spans; /* that were too many to be measured */
};

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
