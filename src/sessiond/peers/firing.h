/* SPDX-License-Identifier: MIT */
/*
 * Triggers whose conditions applications decide (docs/triggers.md): which events may fire them, and
 * what the first pages of the session's ring sets say about them (struct ky_set_freeze).
 *
 * An application fires a trigger by clearing its bit in `armed`. If the trigger takes a snapshot,
 * the application also freezes the ring sets. The daemon is woken, or looks by itself, and takes
 * the snapshot. When the snapshot's consumer has copied all rings, the daemon thaws the sets, and
 * arms the trigger again as soon as its rate allows it.
 *
 * All state is in the first pages, so a successor of the daemon continues where its predecessor
 * was killed.
 */
#ifndef SESSIOND_PEERS_FIRING_H
#define SESSIOND_PEERS_FIRING_H

#include "sessiond/peers/trigger-list.h"

struct env;
struct event_desc;
struct ring_set;

/* The triggers that an event of an application may fire. */
struct event_triggers {
	enum ky_span_role role;
	uint32_t id_size;
	uint64_t span; /* stands for the span's name in this session */
	uint32_t n;
	const struct trigger *list[KY_SET_TRIGGERS];
	bool timed[KY_SET_TRIGGERS]; /* it ends a span of this trigger */
};

/* Finds the triggers of the session that the event may fire. */
void firing_find(const struct session *s, const struct event_desc *d, struct event_triggers *ret);
/*
 * An event with these triggers is in the set, also if no application maps it any more: what the set
 * says of other triggers is not believed.
 */
void firing_note(struct ring_set *set, const struct event_triggers *t);
/*
 * Returns whether an event that an application, `running`: one that runs, records into the session
 * may fire it.
 */
bool firing_is_possible(const struct trigger *t, bool running);
/* Continues a hash with all that the application gets of them. */
uint64_t firing_hash(const struct event_triggers *t, uint64_t hash);

/* Gives the trigger a number. Returns -EDQUOT if the session has as many as can be. */
int firing_number(const struct triggers *all, struct trigger_spec *spec);
/* Begins or ends to look, soon, as the triggers and the session's state require. */
void firing_watch(struct triggers *all);
void firing_timer(struct ky_timer *timer);
/* Arms the triggers in a set that has just got its memory. */
void firing_arm_set(struct ring_set *set);
/* Disarms a trigger that is freed next. */
void firing_remove(struct trigger *t);
/*
 * Fires what applications have fired, and thaws sets that are frozen for no trigger. Called when no
 * program records into the session any more.
 */
void firing_settle(struct session *s);
/* Does the same for a predecessor's session, unless firing_watch() does, or it is to end. */
void firing_adopt(struct session *s);
/* Fires what applications have fired in any session, and arms what may fire again. */
void firing_look_all(struct env *e);
/*
 * An application that records into the session says that it has fired triggers, or is dropped.
 * Examines the session at once; or soon, and however many say so, not more often than that.
 */
#define FIRING_PAUSE_NS (5 * KY_NS_PER_MS)
void firing_reported(struct session *s, bool at_once);
/*
 * Begins and ends a copy of the session's rings for a snapshot: the sets are frozen meanwhile.
 */
void firing_begin_copy(struct session *s);
void firing_end_copy(struct session *s);

#endif
