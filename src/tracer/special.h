/* SPDX-License-Identifier: MIT */
/*
 * How an event is recorded whose hook asks for more than the payload (ky_hook.special): it must pass a filter.
 */
#ifndef TRACER_SPECIAL_H
#define TRACER_SPECIAL_H

#include "ring/writer.h"

/* A ky_special_fn. */
void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* Likewise, for an event that the daemon refused: counted as discarded. */
void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* Likewise, for an event that is recorded by its hook's heir. */
void tracer_record_renewed(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* After ky_record_choose: if that left the event to the ways for all hooks, is there a shorter one? */
void tracer_choose_special(struct kymo_event_state *state);

#endif
