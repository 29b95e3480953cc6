/* SPDX-License-Identifier: MIT */
/*
 * Rounds of draining.
 *
 * Writers make no system call, so only a timer wakes the consumer: as often as the pace of the
 * writers requires (stream/pace.h), or as the ring set's read-timer says. It does not run before
 * the first ring set.
 */
#ifndef CONSUMERD_ROUND_H
#define CONSUMERD_ROUND_H

#include "consumerd/state.h"

void round_init(struct consumerd *c);
void round_deinit(struct consumerd *c);
/* Writes all records that were published so far, and updates c->status. */
void round_flush(struct consumerd *c);
/* Looks at all sources, and writes nothing. */
void round_look(struct consumerd *c);
/*
 * Reports how much room the file system has, ten times a second at most. The session daemon does
 * not look at it itself.
 */
void round_note_room(struct consumerd *c, uint64_t now);
/* Runs a round as soon as the loop turns. */
void round_soon(struct consumerd *c);
/* Writes all that can be written, and counts the rest. Nothing is drained afterwards. */
void round_finish(struct consumerd *c);

#endif
