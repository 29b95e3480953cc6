/* SPDX-License-Identifier: MIT */
/*
 * Reads traces: all CTF 1.8 traces below a directory, as one sequence of events in order of time.
 * Made for Kymo's own traces and LTTng's. Called by the command line's view and stat, by one thread; what it returned may be used by others meanwhile.
 *
 * Traces are hostile input: what cannot be read is stepped over and counted, never trusted. What
 * the reader returns is borrowed until the reader is closed.
 */
#ifndef READER_READER_H
#define READER_READER_H

#include "reader/stream.h"

struct ky_trace_reader;

struct ky_trace_reader_options {
	bool spans_only; /* only count: no items but of spans' events and of losses, without values */
	/* A line about what is damaged or missing, without newline. May be NULL. */
	void (*warn)(void *arg, const char *text);
	void *arg;
};

struct ky_item {
	enum ky_item_kind kind; /* not NONE */
	bool has_time;
	int64_t ns; /* since 1970, if has_time */
	const struct ky_stream *stream;
	/* KY_ITEM_EVENT */
	const struct ky_trace *trace;
	const struct ky_event_class *event;
	uint64_t bits;			/* of its record */
	const uint8_t *data;		/* packet that the values refer to */
	const struct ky_values *values; /* those that the caller gave */
	struct ky_scope_values scopes[KY_N_SCOPES];
	/* KY_ITEM_LOST_*, KY_ITEM_DAMAGED */
	struct ky_lost lost;
};

/* The first value of a scope; NULL where no event of the caller's values has any. */
static inline const struct ky_value *ky_item_values(const struct ky_item *item, enum ky_scope scope)
{
	return item->values->n ? &item->values->v[item->scopes[scope].first] : NULL;
}

/* Sums over all streams; complete once ky_trace_reader_next returned 0. */
struct ky_trace_reader_totals {
	uint64_t n_events, n_discarded, n_packets, n_packets_lost, n_bytes, n_corrupt;
	size_t n_streams, n_traces, n_truncated;
	bool has_time;
	int64_t begin_ns, end_ns; /* of the first and last event, if has_time */
};

/*
 * Opens all traces below path. Returns 0, or a negative errno with a line in why: what failed, why
 * and, where it helps, what to do.
 */
int ky_trace_reader_open(struct ky_trace_reader **ret_reader, const char *path,
	const struct ky_trace_reader_options *options, char *why, size_t why_size);
/* One trace from memory: the bytes of its metadata and of one stream, which stay the caller's. */
int ky_trace_reader_open_memory(struct ky_trace_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct ky_trace_reader_options *options, char *why, size_t why_size);
/* NULL is fine. Returns NULL. */
struct ky_trace_reader *ky_trace_reader_close(struct ky_trace_reader *r);

/*
 * 1 with the next item, 0 at the end, -ENOMEM. values: where an event's are added, behind those that are there; the
 * caller's. Not needed with spans_only.
 */
int ky_trace_reader_next(
	struct ky_trace_reader *r, struct ky_item *ret_item, struct ky_values *values);

void ky_trace_reader_totals(
	const struct ky_trace_reader *r, struct ky_trace_reader_totals *ret_totals);
/* Trace i of totals.n_traces. */
const struct ky_trace *ky_trace_reader_trace(const struct ky_trace_reader *r, size_t i);
/* Stream i of totals.n_streams. */
const struct ky_stream *ky_trace_reader_stream(const struct ky_trace_reader *r, size_t i);
/*
 * True if some streams' first records are missing: rings of a snapshot reach back differently. *ret_ns is then the time
 * from which all streams are there.
 */
bool ky_trace_reader_complete_from(const struct ky_trace_reader *r, int64_t *ret_ns);
/* How many events of a class of one of the reader's traces there were so far. */
uint64_t ky_trace_reader_count(const struct ky_trace_reader *r, const struct ky_event_class *event);

#endif
