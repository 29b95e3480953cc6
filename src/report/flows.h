/* SPDX-License-Identifier: MIT */
/*
 * The flows of a report: steps of one matter, in any threads, that the page connects by arrows.
 * Steps of one flow have the same identifier, and the same name but for its ending.
 */
#ifndef REPORT_FLOWS_H
#define REPORT_FLOWS_H

#include "base/buf.h"
#include "base/htab.h"

struct ky_flow_step {
	uint32_t name; /* of the event */
	uint32_t stem; /* the name without its ending */
	uint64_t id;
	uint32_t track; /* its number */
	int64_t ns;	/* from the report's origin; never less than that of the step before */
};

struct ky_flows {
	struct ky_htab table;
	struct ky_buf gaps, names, numbers, tracks; /* columns (report/column.h), by step */
	int64_t last_ns;
	uint64_t n_steps;
	uint32_t n;
};

/* Returns 0 or -ENOMEM. */
int ky_flows_add(struct ky_flows *f, const struct ky_flow_step *step);
/* Appends the columns to *part. */
void ky_flows_put(const struct ky_flows *f, struct ky_buf *part);
void ky_flows_deinit(struct ky_flows *f);

#endif
