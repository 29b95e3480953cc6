/* SPDX-License-Identifier: MIT */
/*
 * Chooses how an event is recorded: the one place that fills in what an event calls (struct
 * kymo_event_state). The first row that applies:
 *
 *   the event's hooks                    record           record_flat, record_word
 *   ------------------------------------+----------------+--------------------------------------
 *   a state dump runs, or a hook needs   record_from      record_flat_from, record_word_from
 *     the caller
 *   one is active, has `special`, and    ky_record_event  tracer_choose_special: with or without
 *     fits in the short writers                             filters
 *   one is active, and fits in the       ky_record_event  ky_rseq_flat, ky_rseq_word
 *     short writers
 *   none, or several, or it does not     ky_record_event  ky_record_flat, ky_record_word
 *     fit in the short writers
 *
 * All of them end in ky_record_into for each hook, or do the same in fewer instructions. A thread
 * may go on calling what was chosen before; so each function is right for any hooks, and only
 * slower or faster.
 */
#ifndef TRACER_DISPATCH_H
#define TRACER_DISPATCH_H

#include "tracer/tracer.h"

/*
 * Fills in what is right for these hooks. from: the recording function notes its caller and looks
 * at tracer_only.
 */
void tracer_dispatch(struct kymo_event_state *ret_state, struct ky_hook *hooks, bool from);

/*
 * The calling thread records into these sets only (a state dump), while tracer.dumping. NULL: all.
 */
extern __thread const struct tracer_mask *tracer_only KY_THREAD_TLS;

/* Records an event into the active hooks that lead into the sets of the mask. */
void tracer_record_only(const struct tracer_mask *only, struct ky_hook *hooks, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces);

/* Counts an event as discarded in the sets of the mask. Under the lock. */
void tracer_lose_only(const struct tracer_mask *only, struct ky_hook *hooks);

/* Whether any of the hooks leads into a set of the mask now. */
bool tracer_leads_into(const struct ky_hook *hooks, const struct tracer_mask *only);

#endif
