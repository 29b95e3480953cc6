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
/* After ky_record_choose: takes a shorter way if the event has one hook, and that has filters. */
void tracer_record_choose_filtered(struct kymo_event_state *state, const struct ky_hook *hooks);

#endif
