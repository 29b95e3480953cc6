/* SPDX-License-Identifier: MIT */
/*
 * The reader's side of one ring (docs/shm-abi.md, "Draining"). It divides what applications have
 * published into pieces. A piece is a run of whole records within one block, and can be written out
 * as it lies in memory. The consumer's single thread uses it. It uses no files, no sockets and no
 * allocation.
 *
 * Invariant: our position (`pos`), our counts and the greatest clock that we saw are private. Every
 * word of the ring is read once, then checked or clamped, and only the copy is used. So an
 * application that overwrites the ring can damage only what its own records say. A piece always
 * lies inside the ring's data. Clocks never decrease, and none is later than now. Counts of records
 * never exceed what the bytes can hold. Counts of lost events never decrease, and never grow by
 * more than is possible. A ring that claims anything else is quarantined, except that clocks are
 * raised and that impossible counts of lost events are ignored.
 *
 * Nothing here writes the ring. The caller informs the writers that room is free (the `consumed`
 * word): it stores `pos` with release after the pieces before it are safe.
 */
#ifndef RING_DRAIN_H
#define RING_DRAIN_H

#include "ring/geometry.h"

struct ky_drain {
	/* the ring's memory, from a checked geometry */
	const struct ky_ring_ctl *ctl;
	const struct ky_block_entry *blocks;
	const uint8_t *data; /* of position 0 */
	uint32_t block_size, n_blocks;
	uint64_t reach; /* a head is less than this far ahead of our block */
	enum ky_clock clock;
	/*
	 * Set by the owner: no valid clock is later; 0: than the present time. Rings of another
	 * boot may have later ones.
	 */
	uint64_t latest;
	/* what was taken */
	uint64_t pos;	/* first byte that was not taken */
	uint64_t count; /* records before it */
	/*
	 * not less than the clocks of the records before it, not greater than the others; 0 at the
	 * start
	 */
	uint64_t ts;
	/* the copy that ky_drain_look made */
	uint64_t head;			     /* position up to which pieces are described; >= pos */
	uint64_t head_count;		     /* records before it */
	uint64_t head_ts;		     /* end of their clocks; valid if `settled` */
	uint64_t max_ts;		     /* no valid clock is later */
	uint64_t lost[KY_LOST_REASONS];	     /* never decreases */
	uint64_t lost_seen[KY_LOST_REASONS]; /* the ring's counters at the last look */
	bool resumed;			     /* and not looked at since then */
	bool is_thread;			     /* the ring of a thread */
	bool settled;			     /* head_ts belongs to head */
	/* a thread changed the clock of this head at the last look; 0: none did */
	uint64_t moving_head;
	bool quarantined;	 /* a word was invalid once: no record is read again */
	uint64_t abandoned_head; /* head at the last look after the quarantine */
	uint64_t n_abandoned;	 /* records that writers published after it */
};

struct ky_drain_piece {
	const uint8_t *data; /* in the ring */
	uint32_t len;	     /* bytes, > 0 */
	uint64_t pos;	     /* of the first byte */
	/* first possible position of the next piece: pos + len, or the next block */
	uint64_t next;
	/* end_ts of the previous piece; at a ring's start, the clock of its first record */
	uint64_t begin_ts;
	/* not less than its last record's clock, not greater than that of the next record */
	uint64_t end_ts;
	uint64_t n_events;
	/* owner of a thread's ring, as the application states it; not checked */
	struct ky_owner owner;
};

/*
 * Initializes d at position 0 of ring i. g was checked. base is its mapping of total_size bytes
 * (borrowed).
 */
void ky_drain_init(struct ky_drain *d, const struct ky_geometry *g, void *base, uint32_t i);
/*
 * Continues at `pos` after a restart, with the data of a file's last packet. Before pos, `count`
 * records with clocks up to ts were taken. Returns 0, or -EBADMSG if pos is not a possible
 * position.
 */
int ky_drain_resume(struct ky_drain *d, uint64_t pos, uint64_t count, uint64_t ts);
/*
 * Continues after an earlier reader that kept no state: at the beginning of the block that contains
 * `consumed`, as if everything before it had been taken. Errors as ky_drain_resume; also -EBADMSG
 * if the ring claims more records than fit before that block.
 */
int ky_drain_rejoin(struct ky_drain *d, uint64_t consumed);
/*
 * Reads the head and the lost counters. settle: also reads the clock of the head, without which no
 * piece of a partly filled block is described. If writers are too busy for that, or a thread was
 * interrupted while it changed that clock, the block waits for the next look. Returns 0, or
 * -EBADMSG if the ring is quarantined, now or before.
 */
int ky_drain_look(struct ky_drain *d, bool settle);
/*
 * Describes the next piece before the head of the last look. partial: also from the last block,
 * which writers have not left. Returns false if there is none, or if the ring claims what is
 * impossible: then `quarantined` is set. Skips the unused rest of finished blocks, so `pos` may
 * grow.
 */
bool ky_drain_next(struct ky_drain *d, bool partial, struct ky_drain_piece *ret_piece);
/* Returns the number of blocks before the head of the last look that writers have left. */
uint32_t ky_drain_ready(const struct ky_drain *d);
/* Returns the head of the last look as a position that skips no block. For measuring the pace. */
uint64_t ky_drain_volume(const struct ky_drain *d);
/* Takes the piece, which is safe or was discarded: the next one begins behind it. */
void ky_drain_take(struct ky_drain *d, const struct ky_drain_piece *piece);
/*
 * Gives the ring up: records after the last one taken are discarded, and later ones are only
 * counted.
 */
void ky_drain_abandon(struct ky_drain *d);
/*
 * Returns the number of events lost for all reasons at the last look, including those recorded into
 * a quarantined ring.
 */
uint64_t ky_drain_lost(const struct ky_drain *d);

#endif
