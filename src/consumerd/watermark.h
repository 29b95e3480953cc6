/* SPDX-License-Identifier: MIT */
/*
 * The watermark: a clock up to which all records are in the sink, for readers of a trace that is
 * still recorded.
 *
 * A set's records are complete up to a clock that was read before the set's heads were fetched, if
 * all records before these heads are written. The watermark is the least such clock of all sets. It
 * never decreases.
 *
 * The clock is read DELAY_NS before the heads are fetched. A writer that was interrupted between
 * reading the clock and publishing its record, for less than that, publishes in time.
 */
#ifndef CONSUMERD_WATERMARK_H
#define CONSUMERD_WATERMARK_H

#include "consumerd/state.h"

/* Reads the clock. Called at the begin of each round, before heads are fetched. */
void watermark_begin_round(struct consumerd *c, uint64_t now_ns);
/* Checks, after all looks and before anything is written, that no set is unknown. */
void watermark_after_looks(struct consumerd *c);
/*
 * Stores the watermark after a round that has flushed a set, and after a rotation. Does nothing for
 * snapshots, which are complete when they exist.
 */
void watermark_update(struct consumerd *c);
/* Stores that nothing will be recorded any more. Does nothing if nothing ever was. */
void watermark_end(struct consumerd *c);

#endif
