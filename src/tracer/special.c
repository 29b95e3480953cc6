/* SPDX-License-Identifier: MIT */
#include "tracer/special.h"

#include "tracer/filter.h"

void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in tracer_filters_set. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	if (filters && !tracer_filters_pass(filters, payload, len, pieces, n_pieces))
		return;
	ky_record_hook(hook, payload, len, pieces, n_pieces);
}
