/* SPDX-License-Identifier: MIT */
/*
 * Records with contexts in front of the event's fields.
 */
#ifndef TRACER_PREPEND_H
#define TRACER_PREPEND_H

#include "ring/writer.h"
#include "tracer/context.h"

/* ky_record_hook for a hook with contexts. */
void tracer_record_prepended(struct ky_hook *hook, const struct tracer_contexts *contexts,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces);

/* A kymo_record_fn for events whose contexts want to know from where they are recorded. */
void tracer_record_from(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

#endif
