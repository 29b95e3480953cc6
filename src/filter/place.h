/* SPDX-License-Identifier: MIT */
#ifndef FILTER_PLACE_H
#define FILTER_PLACE_H

#include "filter/insn.h"

/*
 * Writes the steps to the first n_anchors anchors of a payload with these fields. A node has been
 * found behind them.
 */
void ky_filter_steps(
	const struct kymo_field *fields, unsigned n_anchors, struct ky_filter_step *steps);

#endif
