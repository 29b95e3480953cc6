/* SPDX-License-Identifier: MIT */
/*
 * Places of a report where records are missing. An event behind a loss does not end what began on
 * its track before the loss. A loss concerns the tracks of its trace or, if the stream has events
 * of one thread at a time, of this thread. Tracks are many: each learns of the losses when it is
 * used next.
 *
 * Times are nanoseconds from the report's origin.
 */
#ifndef REPORT_LOSSES_H
#define REPORT_LOSSES_H

#include "report/tracks.h"

/* A loss, as the page shows it. */
struct ky_shown_loss {
	int64_t from_ns, to_ns;
	uint64_t n;
	int64_t track; /* -1: of all */
};

/* The losses of a group, or of a stream that is a thread's own. */
struct ky_gap {
	int64_t until_ns;      /* events were missing last */
	KY_VEC(size_t) losses; /* numbers: cuts */
	uint32_t track;	       /* 1 + number of that with the last event of the stream; 0: none */
};

/* By number of a group or a stream. */
struct ky_gaps {
	struct ky_gap *v; /* owned */
	size_t n, cap;
};

struct ky_track_losses {
	KY_VEC(struct ky_shown_loss) shown;
	struct ky_gaps of_groups, of_streams;
	KY_VEC(int64_t) cuts; /* by number of a loss: its begin */
	uint64_t n_of_groups;
	int64_t until_ns; /* the latest of all: asynchronous spans may pass through any stream */
};

/* Adds a loss, an event of KY_EVENT_LOST. is_shown: it is among the events. 0 or -ENOMEM. */
int ky_track_losses_add(struct ky_track_losses *l, const struct ky_source_event *e, int64_t from_ns,
	int64_t to_ns, bool is_shown);
/* Notes that the track has this event. Returns 0 or -ENOMEM. */
int ky_track_losses_use(
	struct ky_track_losses *l, struct ky_track *k, const struct ky_source_event *e);
/* Cuts what was open in the track when records were lost since it was used last. Accepts NULL. */
void ky_track_losses_apply(struct ky_track_losses *l, struct ky_tracks *tracks, struct ky_track *k);
void ky_track_losses_deinit(struct ky_track_losses *l);

#endif
