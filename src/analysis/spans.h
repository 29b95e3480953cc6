/* SPDX-License-Identifier: MIT */
/*
 * Measures how long spans of a trace took (docs/spans.md), by name. The command line's stat passes
 * all items of a reader in their order.
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
	uint32_t index; /* order in which the names were met, from 0 */
	bool is_async;
	uint64_t n_open;    /* begun, not ended */
	uint64_t n_unbegun; /* ended, but began before the trace, or in missing records */
	uint64_t n_cut;	    /* a begin and an end with records missing between them: not paired */
	uint64_t self_ns;   /* of those that ended, without inner spans of the same thread */
	struct ky_histogram ns; /* durations of those that ended */
	/* of the first one that took ns.max, if any ended */
	int64_t longest_ns; /* its begin */
	char *longest_key;  /* owned */
};

/* An event that begins or ends a span of a name and a key, whatever its own name is. */
struct ky_span_pair {
	struct ky_span_name *name;
	const struct ky_trace *trace; /* its threads are part of the key; NULL: no threads are */
	const struct ky_stream *stream;
	const char *key;
	size_t key_len;
	int64_t ns;
	bool is_begin;
	bool is_fifo; /* the first that began ends first, not the last */
};

/*
 * Times since which no record is missing, by a number. INT64_MIN: no record is known to be missing.
 */
struct ky_span_times {
	int64_t *ns; /* owned */
	size_t n;
};

/* The part of an item that spans need: an event of a span, or missing records. */
struct ky_span_event {
	const struct ky_stream *stream;
	const char *name; /* of the event; NULL: records are missing until ns */
	size_t class;	  /* its index */
	uint64_t id;
	int64_t ns;
	bool is_async;
};

/* The thread and process of a span's begin; -1: not known. */
struct ky_span_owner {
	int64_t pid, tid;
};

struct ky_open_span;

/* A span that ended, and whose duration is known. */
struct ky_ended_span {
	const struct ky_span_name *name;
	uint64_t begin, end; /* numbers of its events: ky_spans.n_events at that time, from 1 */
	uint64_t parent;     /* number of the begin of the span that it began in; 0: none */
	int64_t begin_ns;
	uint64_t ns, self_ns;
	struct ky_span_owner owner;
	const char *key; /* of pairs; key_len bytes */
	size_t key_len;
	unsigned depth;			  /* spans of its thread that were open when it began */
	bool crosses;			  /* it ended after the span that it began in */
	const struct ky_open_span *outer; /* of its thread; NULL: none */
};

/* The effect of events of a name: they begin or end the span, or, without a span, neither. */
struct ky_event_role {
	const char *event; /* the reader's; NULL: none yet */
	struct ky_span_name *span;
	bool is_async, is_begin;
};

#define KY_SPAN_ROLES 64

struct ky_spans {
	struct ky_event_role roles[KY_SPAN_ROLES]; /* of the last events, by their class */
	struct ky_htab names;			   /* struct ky_span_name */
	struct ky_htab threads;			   /* struct thread: the open spans of each */
	struct thread *last_thread;		   /* of an event; NULL: none yet */
	struct ky_htab open;	     /* but those that only their thread's list has yet */
	struct ky_open_span *unused; /* for the next ones; linked by `below` */
	/* By stream (rank); the latest of a trace's streams, by its group; and of all, one. */
	struct ky_span_times of_stream, of_trace, of_all;
	struct ky_span_name *
		*by_total; /* owned; all names once finished, those first that took most time */
	uint64_t n_events; /* begins and ends that were added */
	struct ky_span_owner owner; /* of the next event; the caller sets it if it wants it */
	/* Called for each span that ended, with a result of 0 or -ENOMEM. May be NULL. */
	int (*ended)(void *arg, const struct ky_ended_span *span);
	void *arg;
};

/* Initializes s, with the streams whose begin is missing. Returns 0 or -ENOMEM. */
int ky_spans_begin(struct ky_spans *s, const struct ky_trace_reader *r);
/*
 * Notes that records of the stream are missing until that time: no span that began before is paired
 * with a later end. A gap in a thread's own stream affects spans within that stream, and all spans
 * that begin or end in another stream. Returns 0 or -ENOMEM.
 */
int ky_spans_gap(struct ky_spans *s, const struct ky_stream *stream, int64_t until_ns);
/* Extracts the part of an item that spans need. Returns false if there is none. */
bool ky_span_event_of(struct ky_span_event *ret, const struct ky_item *item);
/* Adds one event. The caller passes them in order. Returns 0 or -ENOMEM. */
int ky_spans_add_event(struct ky_spans *s, const struct ky_span_event *e);
/* Returns a name for pairs; borrowed. NULL if there is no memory. */
struct ky_span_name *ky_spans_name(struct ky_spans *s, const char *name);
/* Adds one event of a pair. The caller passes them in order. Returns 0 or -ENOMEM. */
int ky_spans_add_pair(struct ky_spans *s, const struct ky_span_pair *p);
/*
 * Adds one item: a span's event, or missing records. The caller passes all items of the reader in
 * order. Returns 0 or -ENOMEM.
 */
int ky_spans_add(struct ky_spans *s, const struct ky_item *item);
/* Return the name of an open span, and the span around it in its thread or NULL. */
const struct ky_span_name *ky_open_span_name(const struct ky_open_span *o);
const struct ky_open_span *ky_open_span_outer(const struct ky_open_span *o);
/* Fills by_total, after the last event. Returns 0 or -ENOMEM. */
int ky_spans_finish(struct ky_spans *s);
/* Releases s, before or after the reader closes. */
void ky_spans_deinit(struct ky_spans *s);

#endif
