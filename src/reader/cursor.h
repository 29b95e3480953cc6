/* SPDX-License-Identifier: MIT */
/*
 * One iteration over opened traces: the items of all streams that are selected, in order of time. A
 * cursor is used by one thread at a time; several cursors may read the same traces at once.
 */
#ifndef READER_CURSOR_H
#define READER_CURSOR_H

#include "reader/state.h"
#include "reader/walk.h"

struct ky_cursor;

/* The values of ky_select.wanted for a class of events. */
enum ky_want {
	KY_WANT_EVENT = 1,
	KY_WANT_VALUES = 2, /* they are decoded */
	KY_WANT_FILTER = 4, /* and the event is passed to the filter */
	/* of VALUES, only what formats need that print scopes from their bytes; not with FILTER */
	KY_WANT_LINE = 8,
};

struct ky_item {
	enum ky_item_kind kind; /* EVENT, LOST_* or DAMAGED */
	bool has_time;
	int64_t ns; /* since 1970, if has_time */
	const struct ky_stream *stream;
	const struct ky_file *file;
	const struct ky_stream_class *class;
	/* KY_ITEM_EVENT */
	const struct ky_trace *trace;
	const struct ky_event_class *event;
	uint64_t bits; /* of its record */
	uint64_t body; /* bit of d->data at which its body begins, if that is a whole byte */
	const struct ky_decoder *d; /* values by role; until the next item */
	/* bytes that the values refer to; until the next item, or as long as it has users */
	struct ky_packet *packet;
	const struct ky_values *values; /* those that the caller gave */
	struct ky_scope_values scopes[KY_N_SCOPES];
	/* KY_ITEM_LOST_*, KY_ITEM_DAMAGED */
	struct ky_loss lost;
};

/* The first value of a scope; NULL where no event of the caller's values has any. */
static inline const struct ky_value *ky_item_values(const struct ky_item *item, enum ky_scope scope)
{
	return item->values->n ? &item->values->v[item->scopes[scope].first] : NULL;
}

/* Sums over all that a cursor has read. */
struct ky_totals {
	uint64_t n_events, n_discarded, n_packets, n_packets_lost, n_corrupt;
	size_t n_truncated;
	bool has_time;
	int64_t begin_ns, end_ns; /* earliest and latest event, if has_time */
	bool is_doubtful;	  /* other slices may give other results: ky_walk */
};

/*
 * Begins at the first item. select: copied, but for `wanted`. A selection with limits of time needs
 * the reader's index (ky_trace_reader_index). 0 or -ENOMEM.
 */
int ky_cursor_open(struct ky_cursor **ret_cursor, const struct ky_trace_reader *r,
	const struct ky_select *select, const struct ky_trace_reader_options *options);
/*
 * Items of classes with KY_WANT_FILTER are left out if pass returns false. Their values are
 * decoded. One filter; before the first item.
 */
void ky_cursor_set_filter(
	struct ky_cursor *c, bool (*pass)(void *arg, const struct ky_item *item), void *arg);
/*
 * Takes buffers from this pool, which outlives the cursor, and leaves them there: cursors one after
 * another need no new memory. Before the first item.
 */
void ky_cursor_set_buffers(struct ky_cursor *c, struct ky_packets *packets);
/* Closes c, which may be NULL. No packet may have users any more. Returns NULL. */
struct ky_cursor *ky_cursor_close(struct ky_cursor *c);
/*
 * Reads the next item. Returns 1, 0 at the end, or -ENOMEM. values: the caller's; receives the
 * values of an event, behind those that it has, if the event's class is selected with
 * KY_WANT_VALUES or there is no selection. May be NULL.
 */
int ky_cursor_next(struct ky_cursor *c, struct ky_item *ret_item, struct ky_values *values);
/*
 * Continues after a refresh of the reader, also if the end was reached. Items that were returned
 * become invalid. wanted: as ky_select.wanted, for all classes. Returns 0 or -ENOMEM.
 */
int ky_cursor_refresh(struct ky_cursor *c, const uint8_t *wanted);
/*
 * Items at or after this time are left for later: ky_cursor_next returns 0 before them. Default:
 * INT64_MAX, no limit.
 */
void ky_cursor_until(struct ky_cursor *c, int64_t ns);
/* Returns how many bytes were read, and in *ret_total of how many. */
uint64_t ky_cursor_progress(const struct ky_cursor *c, uint64_t *ret_total);
/* Releases a packet that the caller uses. */
void ky_cursor_unref(struct ky_cursor *c, struct ky_packet *p);
/* Returns the sums so far. They are complete once ky_cursor_next returned 0. */
void ky_cursor_totals(const struct ky_cursor *c, struct ky_totals *ret_totals);
/* Returns the numbers of events, selected or not, by the index of their class. */
const uint64_t *ky_cursor_counts(const struct ky_cursor *c);

#endif
