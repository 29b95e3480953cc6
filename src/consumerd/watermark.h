/* SPDX-License-Identifier: MIT */
/*
 * The watermark: a clock up to which all records are in the sink, for readers of a trace that is
 * still recorded.
 *
 * A set's records are complete up to a clock from before the set's heads were fetched, if all
 * records before these heads are written. The watermark is the least such clock of all sets. It
 * never decreases.
 *
 * That clock is the one that a round reads first, less DELAY_NS. A writer that was interrupted
 * between reading the clock and publishing its record, for less than that, publishes in time.
 *
 * New sets do not hold the watermark back: a clock counts if it was read while the consumer knew
 * all sets that the daemon had made (n_sets in abi/resume.h). A set that was made later has no
 * earlier record, so it is complete up to that clock when it arrives.
 */
#ifndef CONSUMERD_WATERMARK_H
#define CONSUMERD_WATERMARK_H

#include "consumerd/state.h"

struct stream_set;

/* Reads the clock. Called at the begin of each round, before heads are fetched. */
void watermark_begin_round(struct consumerd *c);
/* Called for each new set. */
void watermark_add_set(const struct consumerd *c, struct stream_set *set);
/*
 * Stores the watermark after a round that has flushed a set, and after a rotation. Does nothing for
 * snapshots, which are complete when they exist.
 */
void watermark_update(struct consumerd *c);
/* Stores that nothing will be recorded any more. Does nothing if nothing ever was. */
void watermark_end(struct consumerd *c);

#endif
