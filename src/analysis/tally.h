/* SPDX-License-Identifier: MIT */
/*
 * Counts the events of a query by the values of fields: "name", "process", "thread", "cpu",
 * "stream", or any field or context. Several names with commas between them make one key.
 */
#ifndef ANALYSIS_TALLY_H
#define ANALYSIS_TALLY_H

#include "base/htab.h"
#include "reader/query.h"

#define KY_TALLY_MAX	  65536		       /* further keys are counted as one, */
#define KY_TALLY_TEXT_MAX ((uint64_t)64 << 20) /* and those beyond so many bytes of text */

struct ky_tally_key {
	struct ky_hnode node;
	uint64_t n;
	size_t len;
	char key[]; /* NUL-terminated, as text shows values; "-" where an event has no such field */
};

struct ky_tally {
	struct ky_htab table;	    /* struct ky_tally_key */
	struct ky_tally_key **by_n; /* owned; the most frequent first */
	size_t n;
	uint64_t n_events, n_others; /* n_others: of keys beyond the limits, or that are too long */
	uint64_t n_text;	     /* bytes of keys */
	char *unknown;		     /* owned; name of a field that no class has, or NULL */
};

/*
 * Counts the events of q by the fields `by`. Returns 0, -EINVAL if `by` has an empty name or too
 * many, -ENOENT if `unknown` is the name of a field that no class of the trace has, or -ENOMEM. The
 * caller calls ky_tally_deinit in any case.
 */
int ky_tally_collect(struct ky_tally *g, const struct ky_query *q, const char *by,
	const struct ky_trace_reader_options *options);
void ky_tally_deinit(struct ky_tally *g);

#endif
