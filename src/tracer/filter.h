/* SPDX-License-Identifier: MIT */
/*
 * Filters of the program's events. A list of them is made when MAP names filters for an event, and lives for ever, since a
 * thread may be running it at any time; equal lists are one.
 */
#ifndef TRACER_FILTER_H
#define TRACER_FILTER_H

#include <kymo/types.h>

#include "base/util.h"

struct tracer_filters;

/* Does the event pass any filter of the list? As a kymo_record_fn: any thread, also in signal handlers. */
bool tracer_filters_pass(const struct tracer_filters *filters, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

#endif
