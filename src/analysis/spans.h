/* SPDX-License-Identifier: MIT */
/*
 * How long spans of a trace took (docs/spans.md), by name. Fed with all events of a reader in their order; for the command
 * line's stat.
 */
#ifndef ANALYSIS_SPANS_H
#define ANALYSIS_SPANS_H

#include "base/htab.h"
#include "reader/reader.h"

/* Spans of one name and kind. */
struct ky_span_name {
	struct ky_hnode node;
	const char *name; /* "provider:name", name_len bytes; the reader's */
	size_t name_len;
	bool is_async;
	uint64_t n_open;    /* begun, not ended */
	uint64_t n_unbegun; /* ended, but begun before the trace, or in what is missing of it */
	uint64_t total_ns;  /* of those that ended; saturates */
	uint64_t *ns;	    /* owned: how long each took; once finished, in order */
	size_t n, cap;
};

struct ky_spans {
	struct ky_htab names; /* struct ky_span_name */
	struct ky_htab open;
	struct ky_span_name *
		*by_total; /* owned; all names once finished, those first that took most time */
};

/* For any event that the reader returned last; others than spans' do nothing. 0 or -ENOMEM. */
int ky_spans_add(struct ky_spans *s, const struct ky_item *item);
/* After the last event: fills by_total. 0 or -ENOMEM. */
int ky_spans_finish(struct ky_spans *s);
/* The shortest duration that so many percent did not exceed; 0 when none has ended. Once finished. */
uint64_t ky_span_percentile(const struct ky_span_name *name, unsigned percent);
/* Before the reader is closed, or after. */
void ky_spans_deinit(struct ky_spans *s);

#endif
