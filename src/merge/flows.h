/* SPDX-License-Identifier: MIT */
/*
 * Events limit how far the clocks of their hosts are apart: nothing arrives before it departs.
 */
#ifndef MERGE_FLOWS_H
#define MERGE_FLOWS_H

#include <kymo/reader.h>

#include "merge/offsets.h"

#define FLOWS_WHY 512

struct flows {
	struct kymo_reader *reader; /* borrowed */
	const size_t *hosts;	    /* borrowed: by number of trace */
	struct offsets *offsets;
	uint64_t n_pairs;    /* pairs of events of two hosts */
	char why[FLOWS_WHY]; /* of a failure */
};

/*
 * Adds the bounds that follow from events of two hosts. spec: "w3c": a span begins after its
 * parent, which another host has; "calls": likewise, and it ends before its parent does; or
 * "DEPARTURE,ARRIVAL,FIELD": events of these names with the same value of a field. Returns 0 or
 * -errno, with `why`.
 */
int flows_add(struct flows *f, const char *spec);

#endif
