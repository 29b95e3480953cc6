/* SPDX-License-Identifier: MIT */
/*
 * The reader's side of one ring (docs/shm-abi.md, "Draining"): turns what programs have published
 * into pieces, each a run of whole records within one block, that can be written out as they lie in
 * memory. Used by the consumer's single thread; no files, no sockets, no allocation.
 *
 * Invariant: where we are (`pos`), what we counted and the greatest clock we saw are private; every
 * word of the ring is fetched once, checked or clamped, and only the copy is used. So a program
 * that scribbles over the ring can spoil what its own records say, and nothing else: a piece always
 * lies inside the ring's data, clocks never go back, counts of records never exceed what the bytes can hold, and counts of
 * lost events never go back or grow by more than is possible.
 *
 * Nothing here writes the ring. Telling the writers that room is free (the `consumed` word) is the
 * caller's: he stores `pos` with release once the pieces before it are safe.
 */
#ifndef RING_DRAIN_H
#define RING_DRAIN_H

#include "ring/geometry.h"

struct ky_drain {
	/* where the ring is: from a checked geometry */
	const struct ky_ring_ctl *ctl;
	const struct ky_block_entry *blocks;
	const uint8_t *data; /* of position 0 */
	uint32_t block_size, n_blocks;
	/* what has been taken */
	uint64_t pos;	/* first byte not taken */
	uint64_t count; /* records before it */
	/* no earlier than the records before it, no later than the others; 0 at the start */
	uint64_t ts;
	/* the copy that ky_drain_look made */
	uint64_t head;			     /* position up to which pieces are given; >= pos */
	uint64_t head_count;		     /* records before it */
	uint64_t head_ts;		     /* end of their clocks; if `settled` */
	uint64_t lost[KY_LOST_REASONS];	     /* never decreases */
	uint64_t lost_seen[KY_LOST_REASONS]; /* what the ring said at the last look */
	bool settled;			     /* head_ts belongs to head */
	bool quarantined;	 /* the head made no sense once: no record is read again */
	uint64_t abandoned_head; /* of the last look since then */
	uint64_t n_abandoned;	 /* records that writers have published since then */
};

struct ky_drain_piece {
	const uint8_t *data; /* in the ring */
	uint32_t len;	     /* bytes, > 0 */
	uint64_t pos;	     /* of the first byte */
	uint64_t next;	     /* where the next piece may begin: pos + len, or the next block */
	/* end_ts of the piece before; clock of its first record at a ring's start */
	uint64_t begin_ts;
	uint64_t end_ts; /* no earlier than its last record, no later than the next one's first */
	uint64_t n_events;
	struct ky_owner owner; /* of a thread's ring: whatever the program says */
};

/* Starts at position 0 of ring i. g was checked, base is its mapping of total_size bytes
 * (borrowed). */
void ky_drain_init(struct ky_drain *d, const struct ky_geometry *g, void *base, uint32_t i);
/*
 * Goes on at `pos`, before which `count` records with clocks up to ts were taken: after a restart,
 * from the last packet of a file. 0, or -EBADMSG when pos cannot be a position.
 */
int ky_drain_resume(struct ky_drain *d, uint64_t pos, uint64_t count, uint64_t ts);
/*
 * Goes on after an earlier reader who kept nothing: at the beginning of the block in which
 * `consumed` lies, as if all before it had been taken. Errors as ky_drain_resume.
 */
int ky_drain_rejoin(struct ky_drain *d, uint64_t consumed);
/*
 * Fetches the head and the lost counters. settle: also what belongs to the head, without which a
 * partly filled block is not given; a writer that is too busy to let it be read makes that wait for
 * the next look. 0, or -EBADMSG when the ring is (or is now) quarantined.
 */
int ky_drain_look(struct ky_drain *d, bool settle);
/*
 * Describes the next piece before the head of the last look. partial: also the last block, which
 * writers have not left yet. False when there is none. Steps over what is left of finished blocks,
 * so `pos` may grow.
 */
bool ky_drain_next(struct ky_drain *d, bool partial, struct ky_drain_piece *ret_piece);
/* The piece is safe (or given up): the next one begins behind it. */
void ky_drain_take(struct ky_drain *d, const struct ky_drain_piece *piece);
/* Events lost for all reasons, as of the last look; those that went into a quarantined ring too. */
uint64_t ky_drain_lost(const struct ky_drain *d);

#endif
