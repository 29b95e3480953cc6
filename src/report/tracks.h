/* SPDX-License-Identifier: MIT */
/*
 * The lines of a report's timeline: threads, processors, asynchronous spans of a process, counters;
 * and the slices that are drawn in them, in rows by depth. Slices of one row do not overlap.
 *
 * Times are nanoseconds from the report's begin.
 */
#ifndef REPORT_TRACKS_H
#define REPORT_TRACKS_H

#include "base/buf.h"
#include "analysis/source.h"
#include "base/vec.h"

#define KY_TRACK_MAX_ROWS 256

enum ky_track_kind {
	KY_TRACK_THREAD,
	KY_TRACK_CPU,
	KY_TRACK_STREAM,  /* events of unknown threads and processors */
	KY_TRACK_ASYNC,	  /* asynchronous spans of a process */
	KY_TRACK_COUNTER, /* of a process */
};

/* Slices of one depth: columns (report/column.h), and the last slice, which may still grow. */
struct ky_row {
	struct ky_buf gaps; /* from the end of the slice before */
	struct ky_buf durations;
	struct ky_buf names; /* name * 4 + KY_SLICE_* */
	uint64_t n;
	int64_t end_ns; /* of the last one in the columns */
	bool has_last;
	int64_t last_begin_ns, last_end_ns;
	uint32_t last_name; /* with flags */
};

#define KY_SLICE_CUT  1u /* its begin or its end is not known: not counted */
#define KY_SLICE_MANY 2u /* several short slices, drawn as one */

struct ky_open_slice {
	uint32_t name; /* 0: this depth is free */
	int64_t begin_ns;
};

struct ky_track {
	struct ky_hnode node;
	enum ky_track_kind kind;
	uint32_t number;
	uint32_t host;	 /* a name, or 0 */
	int64_t pid;	 /* -1: not known */
	int64_t id;	 /* thread, processor, stream; counter: its name */
	uint32_t comm;	 /* a name, or 0 */
	uint32_t stream; /* of its last event */
	uint32_t group;
	size_t n_losses; /* of the report before it was used last */
	uint64_t n_events;
	int64_t last_ns; /* of its last event */
	int64_t gap_ns;	 /* events before may be missing: no slice lasts over this time */
	KY_VEC(struct ky_row) rows;
	KY_VEC(struct ky_open_slice) open; /* by depth */
	struct ky_row states;		   /* of a thread: running, ready, waiting */
	uint32_t state;			   /* a name, or 0 */
	int64_t state_ns;
	uint32_t state_group;	     /* of the event that the state is known from */
	struct ky_buf times, values; /* KY_TRACK_COUNTER: gaps in a column; doubles */
	uint64_t *bins;		     /* owned: events by time; NULL: none */
};

struct ky_tracks {
	struct ky_htab table;
	KY_VEC(struct ky_track *) all; /* owned; by number */
	struct ky_track *last;	       /* the track that was asked for last; NULL: none */
	int64_t coarse_ns;	       /* shorter slices close to each other become one; 0: none */
	uint64_t n_slices, n_too_deep;
	int error; /* 0 or -ENOMEM; stays */
};

void ky_tracks_deinit(struct ky_tracks *t);
/* Finds or makes a track; threads whose pid is not known match any. NULL: no memory (error). */
struct ky_track *ky_tracks_get(
	struct ky_tracks *t, enum ky_track_kind kind, uint32_t host, int64_t pid, int64_t id);
/* Opens a slice below all open ones. Returns its depth; KY_TRACK_MAX_ROWS: too deep, counted. */
size_t ky_track_open(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns);
/* Opens a slice in the first free row. Returns it as ky_track_open. */
size_t ky_track_open_lane(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns);
/* Ends the newest open slice of that name; 0: of any. Does nothing if there is none. */
void ky_track_end(struct ky_tracks *t, struct ky_track *k, uint32_t name, int64_t ns);
/* Ends the slice at this depth, if there is one. */
void ky_track_end_at(
	struct ky_tracks *t, struct ky_track *k, size_t depth, int64_t ns, unsigned flags);
/* Records are missing from that time on: ends all open slices there, as cut. */
void ky_track_cut(struct ky_tracks *t, struct ky_track *k, int64_t from_ns);
/* Sets the state of a thread from ns on; 0: not known. */
void ky_track_set_state(struct ky_tracks *t, struct ky_track *k, uint32_t state, int64_t ns);
/* Ends what is still open. */
void ky_tracks_finish(struct ky_tracks *t);
/* Puts the rows of a track, first that of its states if it has any, into *part. */
void ky_track_put(const struct ky_track *k, struct ky_buf *part);

#endif
