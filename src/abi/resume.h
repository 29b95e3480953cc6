/* SPDX-License-Identifier: MIT */
/*
 * What a consumer leaves in memory for the one that goes on when it has died, beside the packets in
 * its files: where the file of each stream began that was written last. The session daemon makes the
 * memory and gives it to each consumer of the session; it reads only whether the consumer is at work, and programs
 * cannot write it. All zeros is a session that has just begun.
 *
 *   memfd "session":  struct ky_resume_session
 *   memfd "consumed": n_rings x uint64_t (src/abi/ring.h) | from ky_resume_offset() on, n_rings x struct ky_resume_stream
 *
 * A killed process stops between two stores: so a slot is valid only when its last store, that of
 * `chunk`, was made, and the slot that is in use is never written.
 */
#ifndef ABI_RESUME_H
#define ABI_RESUME_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KY_RESUME_INVALID UINT64_MAX

struct ky_resume_session {
	uint64_t chunk; /* that is written now */
	/* chunk + 1: slots for that one are ready, and the files of `chunk` may have gone to their place; or 0 */
	uint64_t prepared;
	uint64_t retired_in; /* chunk + 1: a ring set that is gone has packets in that one; or 0 */
	/* of the memory itself, where it is a file: written by the session daemon, when it made it. A copy is another file */
	uint64_t device, file;
	/* CLOCK_MONOTONIC, written by the consumer, for the daemon to see whether it is at work */
	uint64_t alive_ns;	/* of its last step: a turn of its loop, a stream written */
	uint64_t orphaned_ns;	/* when the session daemon ended without a word; 0: one is there */
	uint64_t unattended_ns; /* for how long there was none, in sum */
	uint64_t due_ns;	/* when it will be at its rings next; 0: when it is asked to */
};

/* State of a stream where one of its files begins. Counts are from the beginning of the session. */
struct ky_resume_slot {
	uint64_t chunk; /* KY_RESUME_INVALID: being written */
	uint64_t file;	/* number in the chunk */
	/* in the ring: position, records before it, and their clocks' end */
	uint64_t pos, count, ts;
	uint64_t discarded; /* that packets have told */
	uint64_t n_packets, n_bytes;
	/* where the chunk began */
	uint64_t chunk_packets, chunk_discarded, chunk_too_big;
	uint64_t kept_from; /* records before the chunk's oldest file that was not removed */
	/* events that were recorded and then removed with a file, or cleared */
	uint64_t removed, cleared;
	uint64_t reserved[2];
};

/* The one in use is that of the greatest file of the greatest chunk that is not later than the session's. */
struct ky_resume_stream {
	struct ky_resume_slot slots[2];
};

static_assert(sizeof(struct ky_resume_session) == 72, "between consumers");
static_assert(sizeof(struct ky_resume_slot) == 128, "between consumers");

static inline uint64_t ky_resume_offset(uint32_t n_rings)
{
	return ((uint64_t)n_rings * sizeof(uint64_t) + 127) & ~(uint64_t)127;
}

/* Bytes of the memfd "consumed". */
static inline uint64_t ky_consumed_size(uint32_t n_rings)
{
	return ky_resume_offset(n_rings) + (uint64_t)n_rings * sizeof(struct ky_resume_stream);
}

#endif
