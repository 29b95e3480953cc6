/* SPDX-License-Identifier: MIT */
/*
 * Messages of triggers: each firing, and each result of an action. Clients can wait for them (kymo
 * watch). They outlive their triggers and sessions; the daemon keeps the newest of each user.
 */
#ifndef SESSIOND_PEERS_TRIGGER_MESSAGES_H
#define SESSIOND_PEERS_TRIGGER_MESSAGES_H

#include "sessiond/peers/trigger-list.h"

#define USER_MESSAGES_MAX 256u /* of one user that are kept */

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

/* The trigger of a message, which may be freed before. The texts are borrowed. */
struct message_source {
	struct session *session;
	const char *trigger, *when;
	uint64_t n_fired, n_left_out;
};

/* Borrows the texts of the trigger. */
struct message_source message_source_of(const struct trigger *t);
/*
 * Logs the message and adds it, unless there is no memory left. output: of the snapshot, or "".
 */
void message_add(const struct message_source *from, enum message_kind kind, const char *output,
	const char *fmt, ...) KY_PRINTF(4, 5);

#endif
