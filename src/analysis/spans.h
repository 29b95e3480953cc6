/* SPDX-License-Identifier: MIT */
/*
 * How long spans of a trace took (docs/spans.md), by name. The command line's stat passes all items
 * of a reader in their order.
 *
 * A begin and an end are paired only if no record of the trace is missing between them. Otherwise
 * the end may be that of a later span, whose begin is missing.
 */
#ifndef ANALYSIS_SPANS_H
#define ANALYSIS_SPANS_H

#include "analysis/histogram.h"
#include "base/htab.h"
#include "reader/cursor.h"

/* Spans of one name and kind. */
struct ky_span_name {
	struct ky_hnode node;
	const char *name; /* "provider:name", name_len bytes; the reader's */
	size_t name_len;
	bool is_async;
	uint64_t n_open;    /* begun, not ended */
	uint64_t n_unbegun; /* ended, but begun before the trace, or in what is missing of it */
	uint64_t n_cut;	    /* a begin and an end with records missing between them: not paired */
	uint64_t self_ns;   /* of those that ended, without the spans in them in the same thread */
	struct ky_histogram ns; /* how long each took that ended */
	/* of the first one that took ns.max, if any ended */
	int64_t longest_ns; /* its begin */
	char *longest_key;  /* owned */
};

/* An event that begins or ends a span of a name and a key, whatever its own name is. */
struct ky_span_pair {
	struct ky_span_name *name;
	const struct ky_trace *trace; /* whose threads are part of the key; NULL: no threads are */
	const struct ky_stream *stream;
	const char *key;
	size_t key_len;
	int64_t ns;
	bool is_begin;
	bool is_fifo; /* the first that began ends first, not the last */
};

/*
 * Times from which records are there without a gap, by a number. INT64_MIN where nothing is known
 * to be missing.
 */
struct ky_span_times {
	int64_t *ns; /* owned */
	size_t n;
};

/* What matters of an item: an event of a span, or records that are missing. */
struct ky_span_event {
	const struct ky_stream *stream;
	const char *name; /* of the event; NULL: records are missing until ns */
	uint64_t id;
	int64_t ns;
	bool is_async;
};

struct ky_spans {
	struct ky_htab names;	/* struct ky_span_name */
	struct ky_htab threads; /* struct thread: what is begun in each */
	struct ky_htab open;
	/* By stream (rank); the latest of a trace's streams, by its group; and of all, one. */
	struct ky_span_times of_stream, of_trace, of_all;
	struct ky_span_name *
		*by_total; /* owned; all names once finished, those first that took most time */
};

/* Before the first item: takes note of the streams whose beginnings are missing. 0 or -ENOMEM. */
int ky_spans_begin(struct ky_spans *s, const struct ky_trace_reader *r);
/*
 * Records of the stream are missing until that time: no span that began before is paired with an
 * end that comes later. What is missing in a thread's own stream matters to spans within that
 * stream, and to all others that have a part in another stream. 0 or -ENOMEM.
 */
int ky_spans_gap(struct ky_spans *s, const struct ky_stream *stream, int64_t until_ns);
/* False if the item is of no consequence for spans. */
bool ky_span_event_of(struct ky_span_event *ret, const struct ky_item *item);
/* For each of these in order. 0 or -ENOMEM. */
int ky_spans_add_event(struct ky_spans *s, const struct ky_span_event *e);
/* A name for pairs; borrowed. NULL without memory. */
struct ky_span_name *ky_spans_name(struct ky_spans *s, const char *name);
/* For each of these in order. 0 or -ENOMEM. */
int ky_spans_add_pair(struct ky_spans *s, const struct ky_span_pair *p);
/*
 * For each item that the reader returned, in order: spans' events, and what is missing. 0 or
 * -ENOMEM.
 */
int ky_spans_add(struct ky_spans *s, const struct ky_item *item);
/* After the last event: fills by_total. 0 or -ENOMEM. */
int ky_spans_finish(struct ky_spans *s);
/* Before the reader is closed, or after. */
void ky_spans_deinit(struct ky_spans *s);

#endif
