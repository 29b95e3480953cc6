/* SPDX-License-Identifier: MIT */
/*
 * Filters of the application's events. The daemon sends a program for each filter of a set. MAP
 * names the filters of an event, and then the programs are linked with the event's fields.
 * Programs, code and lists of code are never freed, because a thread may run them at any time.
 * Equal ones are shared, so that the same request again takes no more memory.
 */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include "filter/pass.h"
#include "tracer/tracer.h"

/* A filter of a set: the daemon's number for it, and its program. */
struct tracer_program;

/* Adds the programs of a FILTERS message. Called under the lock. */
void tracer_filters_learn(struct tracer_set *s, const struct ky_app_filters *msg);

/*
 * Returns the list for these filters of the set (numbers, as in MAP) and an event with these
 * fields. Returns NULL if the event needs to pass none. Also returns NULL if one cannot be linked,
 * because this library is older than the daemon or allocation fails: then events are recorded that
 * should not be, but none is missing. Called under the lock.
 */
const struct tracer_filters *tracer_filters_get(const struct tracer_set *s,
	struct ky_reader numbers, uint32_t n, const struct kymo_field *fields);

/* In place of a number of filters: the list has triggers, which know the filters (trigger.h). */
#define TRACER_HAS_TRIGGERS UINT32_MAX
struct tracer_triggers;

struct tracer_filters {
	uint32_t n;
	/* the place that records the event matters (wants_caller) */
	uint32_t want_caller;
	struct ky_filter_quick quick; /* of the filter, if there is only one */
	const void *code[];
};

/* For trigger.c, under the lock. Links a filter of the set; NULL: it cannot be linked. */
const void *tracer_filters_link(const struct tracer_set *s, uint32_t number,
	const struct kymo_field *fields, uint32_t *want_caller);
/* Keeps the bytes for ever. Returns equal bytes that are kept, or NULL if there is no room. */
const void *tracer_filters_keep(const void *bytes, size_t len);
/* Returns the filters with these triggers; without them if allocation fails or they are NULL. */
const struct tracer_filters *tracer_filters_with(const struct tracer_filters *filters,
	const struct tracer_triggers *triggers, uint32_t want_caller);

/* For tracer_filters_pass(): a list of several filters, or one with triggers (trigger.c). */
bool tracer_filters_pass_any(const struct tracer_filters *filters, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, struct ky_hook *hook);

/*
 * Returns true if the event is to be recorded: it passes any filter of the list, and fires no
 * trigger, which would have recorded it into the hook. Arguments as of a kymo_record_fn. Called in
 * any thread and signal handler.
 */
static inline bool tracer_filters_pass(const struct tracer_filters *filters, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces, struct ky_hook *hook)
{
	/*
	 * Larger than any sub-buffer, and perhaps not readable to its end: it is counted as
	 * discarded.
	 */
	if (ky_unlikely(len > KY_BLOCK_MAX))
		return true;
	if (ky_likely(filters->n == 1))
		return ky_filter_pass(filters->code[0], payload, len, pieces, n_pieces);
	return tracer_filters_pass_any(filters, payload, len, pieces, n_pieces, hook);
}

#endif
