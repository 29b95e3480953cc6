/* SPDX-License-Identifier: MIT */
/*
 * Opened traces: all CTF traces below some directories, with their streams and the classes of their
 * events. They change only when the reader is refreshed, and any threads may share them. The index,
 * which is made later, has a lock. Cursors (reader/cursor.h) read the events.
 *
 * Traces are hostile input: the reader skips and counts all that it cannot read, and never trusts
 * it. The caller borrows all that the reader returns, until the reader is closed.
 */
#ifndef READER_READER_H
#define READER_READER_H

#include "reader/state.h"

/*
 * Opens all traces below the paths. Returns 0, or a negative errno with a line in why: the failure,
 * its reason and, if it helps, what to do.
 */
int ky_trace_reader_open(struct ky_trace_reader **ret_reader, const char *const *paths, size_t n,
	const struct ky_trace_reader_options *options, char *why, size_t why_size);
/*
 * Opens one trace from memory: the bytes of its metadata and of one stream, which stay the
 * caller's.
 */
int ky_trace_reader_open_memory(struct ky_trace_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct ky_trace_reader_options *options, char *why, size_t why_size);
/* Closes r, which may be NULL. Returns NULL. */
struct ky_trace_reader *ky_trace_reader_close(struct ky_trace_reader *r);

/*
 * Looks for what was recorded since the traces were opened or refreshed: new packets, files,
 * classes of events, traces. Numbers of classes, streams and traces stay; new ones get higher
 * numbers. No other thread may use the reader or one of its cursors meanwhile. Cursors continue
 * after ky_reading_refresh. Returns 1 if there is anything new, 0, or a negative errno.
 */
int ky_trace_reader_refresh(struct ky_trace_reader *r);
/* True if a session writes into the directory: its consumer holds a lock on it. */
bool ky_trace_dir_is_recorded(const char *dir);
/*
 * Returns 1 if Kymo is recording one of the traces, 0 if none. Returns -ENOTSUP if that is not
 * known because another tracer made one of them.
 */
int ky_trace_reader_is_recorded(const struct ky_trace_reader *r);
/* Makes the index of all streams with times, once. 0 or -ENOMEM. */
int ky_trace_reader_index(struct ky_trace_reader *r);
/*
 * Returns true if some streams' first records are missing: rings of a snapshot reach back to
 * different times. *ret_ns is then the time from which all streams are complete.
 */
bool ky_trace_reader_complete_from(const struct ky_trace_reader *r, int64_t *ret_ns);
/* Sums from the heads of packets. */
struct ky_reader_sums {
	uint64_t n_packets, n_bytes, n_discarded;
	bool has_times;
	int64_t begin_ns, end_ns; /* of packets; of events, if heads do not have them */
};
/* Computes the sums. Returns 0 or -ENOMEM. */
int ky_trace_reader_sums(struct ky_trace_reader *r, struct ky_reader_sums *ret);

#endif
