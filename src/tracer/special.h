/* SPDX-License-Identifier: MIT */
/*
 * Records an event whose hook needs more than the payload (ky_hook.special): contexts, or a filter.
 */
#ifndef TRACER_SPECIAL_H
#define TRACER_SPECIAL_H

#include "ring/writer.h"

/* A ky_special_fn for contexts and filters. */
void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* A ky_special_fn for an event that the daemon refused: it counts the event as discarded. */
void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* A ky_special_fn for an event that its hook's heir records. */
void tracer_record_renewed(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/*
 * Called after ky_record_choose: if that chose the ways for all hooks, chooses a shorter way if
 * there is one.
 */
void tracer_choose_special(struct kymo_event_state *state);

#endif
