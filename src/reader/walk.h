/* SPDX-License-Identifier: MIT */
/*
 * A walk goes through a stream: it reads packets and records, keeps the clock, counts losses, and
 * skips damaged places. A cursor merges the walks of many streams; each cursor has walks of its
 * own.
 *
 * A walk is always one item ahead: `next` is the kind of the next item, next_ns its time. The body
 * of an event is decoded only when its turn comes. Events that no reader wants are skipped.
 */
#ifndef READER_WALK_H
#define READER_WALK_H

#include "reader/walk-state.h"

/*
 * Initializes a walk before the first item; call ky_walk_advance. Borrows counts, packets, select.
 */
void ky_walk_init(struct ky_walk *w, const struct ky_stream *s, const struct ky_select *select,
	struct ky_packets *packets, uint64_t *counts);
void ky_walk_deinit(struct ky_walk *w);
/* Goes to the next item. May be called again at the end of the stream when the stream has grown. */
void ky_walk_advance(struct ky_walk *w);
/*
 * Continues after the reader was refreshed. If the description of the trace was replaced, reads the
 * head of the current packet and that of the current record with the new one.
 */
void ky_walk_refresh(struct ky_walk *w);
/*
 * Decodes the body of the next event. values: receives its values, and scopes which values belong
 * to which scope; may be NULL. steps: neither values nor roles are needed of scopes that are
 * printed from their bytes. Returns 0, -ENOMEM, or -EBADMSG if the event is damaged: then the walk
 * has left the packet, and the caller advances.
 */
int ky_walk_decode(struct ky_walk *w, struct ky_values *values,
	struct ky_scope_values scopes[KY_N_SCOPES], bool steps);
/* Returns the missing records, if the next item is neither an event nor the end. */
const struct ky_loss *ky_walk_lost(const struct ky_walk *w);
/* Gets the earliest and the latest time of the events. Returns false if none has a time. */
bool ky_walk_times(const struct ky_walk *w, int64_t *ret_begin_ns, int64_t *ret_end_ns);

#endif
