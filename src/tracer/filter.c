/* SPDX-License-Identifier: MIT */
#include "tracer/filter.h"

bool tracer_filters_pass(const struct tracer_filters *filters, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	return true;
}
