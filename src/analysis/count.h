/* SPDX-License-Identifier: MIT */
/*
 * Counts the events of a query by their class, and passes those of spans to ky_spans, in order. All
 * processors take part: each reads slices of time; the results are put together in order by the
 * caller's thread. The result is that of one thread, also for damaged traces.
 */
#ifndef ANALYSIS_COUNT_H
#define ANALYSIS_COUNT_H

#include "analysis/spans.h"
#include "reader/query.h"

struct ky_counts {
	uint64_t *of_class;	 /* owned; by the index of the class */
	struct ky_totals totals; /* n_events: of those that the query selects */
};

/*
 * spans: zero before; begun and fed, but not finished; the caller's. options: where damage is
 * reported, one line at a time. n_threads: 0: as many as there are processors. 0 or a negative
 * errno. The caller calls ky_counts_deinit in any case.
 */
int ky_counts_collect(struct ky_counts *c, const struct ky_query *q, struct ky_spans *spans,
	const struct ky_trace_reader_options *options, size_t n_threads);
void ky_counts_deinit(struct ky_counts *c);

#endif
