/* SPDX-License-Identifier: MIT */
/* Recording for some sets only, as a state dump does: the other sessions that want the event do not get it. */
#ifndef TRACER_ONLY_H
#define TRACER_ONLY_H

#include "tracer/tracer.h"

/* What the calling thread records goes to these sets only, while tracer.dumping; NULL: to all that want it. */
extern __thread const struct tracer_mask *tracer_only KY_THREAD_TLS;

/* As ky_record, for the sets of the mask only. */
void tracer_record_only(const struct tracer_mask *only, struct ky_hook *hooks, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces);

/* Counts an event, which is not there to be recorded, as discarded. Under the lock. */
void tracer_lose_only(const struct tracer_mask *only, struct ky_hook *hooks);

/* Does any of the hooks lead into a set of the mask, now? */
bool tracer_leads_into(const struct ky_hook *hooks, const struct tracer_mask *only);

#endif
