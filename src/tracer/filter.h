/* SPDX-License-Identifier: MIT */
/*
 * Filters of the program's events. What the daemon sends is a program for each filter of a set; MAP names those of an
 * event, and then they are linked with the event's fields. Programs, code and lists of code live for ever, since a thread may be
 * running them at any time; equal ones are one, so that doing the same again takes no more memory.
 */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include "filter/pass.h"
#include "tracer/tracer.h"

/* A filter of a set: the daemon's number of it, and its program. */
struct tracer_program;

/* Learns the programs of a FILTERS message. Under the lock. */
void tracer_filters_learn(struct tracer_set *s, const struct ky_app_filters *msg);

/*
 * The list for these filters of the set (numbers, as in MAP) and an event with these fields. NULL: the event needs pass none;
 * also when one of them cannot be linked, because this library is older than the daemon, or memory is short: events
 * are recorded then that should not be, but none is missing. Under the lock.
 */
const struct tracer_filters *tracer_filters_get(const struct tracer_set *s,
	struct ky_reader numbers, uint32_t n, const struct kymo_field *fields);

struct tracer_filters {
	uint32_t n;
	/* does it matter from where the event is recorded (tracer_record_choose_from)? */
	uint32_t want_caller;
	const void *code[];
};

bool tracer_filters_pass_any(const struct tracer_filters *filters, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* Does the event pass any filter of the list? As a kymo_record_fn: any thread, also in signal handlers. */
static inline bool tracer_filters_pass(const struct tracer_filters *filters, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Larger than any sub-buffer, and perhaps not all there: it is counted as discarded. */
	if (ky_unlikely(len > KY_BLOCK_MAX))
		return true;
	if (ky_likely(filters->n == 1))
		return ky_filter_pass(filters->code[0], payload, len, pieces, n_pieces);
	return tracer_filters_pass_any(filters, payload, len, pieces, n_pieces);
}

#endif
