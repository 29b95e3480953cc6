/* SPDX-License-Identifier: MIT */
#include "tracer/special.h"

#include "tracer/filter.h"
#include "tracer/context.h"

static inline bool passes(const struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in tracer_filters_set. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	return !filters || tracer_filters_pass(filters, payload, len, pieces, n_pieces);
}

void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (!passes(hook, payload, len, pieces, n_pieces))
		return;
	if (hook->contexts)
		tracer_record_prepended(hook, hook->contexts, payload, len, pieces, n_pieces);
	else
		ky_record_hook(hook, payload, len, pieces, n_pieces);
}

void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (passes(hook, payload, len, pieces, n_pieces))
		ky_record_lost(hook, KY_LOST_REFUSED);
}
