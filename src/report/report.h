/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace as one HTML page that needs nothing else: the data as compressed columns, and the
 * program that draws them (page.html, page.js). docs/report.md describes the page and its data.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "reader/format.h"
#include "reader/query.h"

/* Every page contains this line near its beginning. */
#define KY_REPORT_MARK "<meta name=\"generator\" content=\"kymo report\">"

struct ky_report_options {
	const struct ky_query *query;	     /* the events to show */
	const char *title;		     /* of the trace */
	const char *command;		     /* makes a page of another part: "kymo report PATH" */
	uint64_t max_events;		     /* events that are listed with their fields */
	uint64_t max_read;		     /* events after which the page ends; 0: no limit */
	const struct ky_symbolizer *symbols; /* functions of addresses, or NULL */
	const char *findings;		     /* JSON of ky_explanation_json, or NULL */
	const bool *stop; /* set by another thread, atomically: ends with -ECANCELED; or NULL */
	bool has_origin;  /* times are relative to origin_ns, not to the first event */
	int64_t origin_ns;
	const struct ky_trace_reader_options *reader; /* where damage is reported */
};

struct ky_report_summary {
	uint64_t n_events, n_listed, n_slices;
	uint64_t n_long;   /* of the listed events: those whose fields have too much text */
	bool is_truncated; /* max_read was reached */
	struct ky_totals totals;
};

/*
 * Writes the page. Returns 0, -ENODATA if no event with a time is selected, -ENOMEM, or the error
 * of reading or writing.
 */
int ky_report_write(
	FILE *to, const struct ky_report_options *o, struct ky_report_summary *ret_summary);

/* Writes only the data: the elements that stand between both parts of the page. As above. */
int ky_report_write_data(
	FILE *to, const struct ky_report_options *o, struct ky_report_summary *ret_summary);

#endif
