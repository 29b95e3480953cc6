/* SPDX-License-Identifier: MIT */
/*
 * What a session daemon writes down so that its successor can go on where it was killed: a file for each session in
 * RUNDIR/sessions, of lines of JSON, each appended before what it tells of takes effect. docs/recovery.md has the lines.
 *
 * Options, channels, rules, contexts and trackers are the very requests that made them, and are carried out again: there is no
 * second description of them. What the requests do not determine has lines of its own: registries, ring sets, identifiers,
 * whether it records, and who its consumer is.
 */
#ifndef SESSIOND_JOURNAL_H
#define SESSIOND_JOURNAL_H

#include <json-c/json.h>

#include "sessiond/model/session.h"

/* Begins the session's journal, unless the daemon keeps none. */
void journal_begin(struct session *s, struct json_object *create_request);
/* Of a session that has ended: removes it. */
void journal_end(struct session *s);
/* Closes it, and leaves it to a successor. */
void journal_close(struct session *s);

/* A request of the user `uid`, whose command is `lasting`. */
void journal_request(struct session *s, uid_t uid, gid_t gid, struct json_object *request);
/* The user's current session is this one. */
void journal_selected(struct session *s, uid_t uid);
void journal_state(struct session *s);
void journal_consumer(struct session *s);
/* Another chunk has begun; cleared: the one before was thrown away. */
void journal_chunk(struct session *s, bool cleared);
void journal_registry(struct session *s, const struct registry *r);
void journal_set(const struct ring_set *set);
/* The consumer has written out the set, with these counts; `kept` of its events in the chunk. */
void journal_retired(const struct ring_set *set, const struct consumer_counts *counts,
	uint64_t chunk, uint64_t kept);
void journal_event(const struct ring_set *set, const struct set_event *e);

/*
 * Makes the sessions that a predecessor has left, as far as files tell: without descriptors. The number of those whose
 * consumer may be there. The others are told of and forgotten.
 */
unsigned journal_replay(struct daemon *d);

#endif
