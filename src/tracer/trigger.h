/* SPDX-License-Identifier: MIT */
/*
 * Triggers that the application decides: an event that passes a filter, or the end of a span that
 * lasted too long (docs/triggers.md). They run behind the filters of the event that they examine,
 * so events without triggers execute no instruction for them.
 *
 * The thread that meets a condition counts it. If the trigger may fire, it freezes the session's
 * ring sets, records the event, and wakes the listener, which informs the daemon.
 */
#ifndef TRACER_TRIGGER_H
#define TRACER_TRIGGER_H

#include "tracer/filter.h"

struct tracer_trigger {
	const void *code; /* of its filter; or NULL */
	uint64_t ns;	  /* the duration that a span has to exceed */
	uint32_t number;
	uint32_t flags; /* KY_TRIGGER_* */
};

/* The triggers of one event. Never changed, and never freed. */
struct tracer_triggers {
	const struct tracer_filters *filters; /* they decide what is recorded; NULL: everything */
	uint64_t span;			      /* stands for the span's name */
	uint32_t role;			      /* enum ky_span_role */
	uint32_t id_size;		      /* of the span's number */
	/* of the only trigger's filter; it is never used if there is more to decide */
	struct ky_filter_quick quick;
	uint64_t n;
	struct tracer_trigger list[];
};

/*
 * Returns filters that decide as `filters` (may be NULL) do, and examine these triggers. Returns
 * `filters` if one of the triggers cannot be linked. Called under the lock.
 */
const struct tracer_filters *tracer_triggers_get(const struct tracer_set *s,
	const struct tracer_filters *filters, const struct ky_app_triggers *msg,
	const struct kymo_field *fields);
/* Returns the filters without their triggers. */
const struct tracer_filters *tracer_triggers_strip(const struct tracer_filters *filters);

/* Returns true if a trigger has fired since the last call. */
bool tracer_triggers_fired(void);
/* Called in a forked child. */
void tracer_triggers_reset(void);

#endif
