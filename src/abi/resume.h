/* SPDX-License-Identifier: MIT */
/*
 * The data that a consumer leaves in memory for its successor, beside the packets in its files: the
 * begin of the file of each stream that was written last. The session daemon makes the memory and
 * gives it to each consumer of the session. The daemon reads only whether the consumer is working,
 * and where, and writes only n_sets. Applications cannot write it. All zeros means a session that
 * has just begun.
 *
 *   memfd "session":   struct ky_resume_session
 *   memfd "consumed":  n_rings x uint64_t (src/abi/ring.h), then from ky_resume_offset() on
 *                      n_rings x struct ky_resume_stream
 *
 * A killed process stops between two stores. So a slot is valid only after its last store, that of
 * `chunk`, and the slot in use is never written.
 */
#ifndef ABI_RESUME_H
#define ABI_RESUME_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/ring.h"

#define KY_RESUME_INVALID UINT64_MAX

struct ky_resume_session {
	uint64_t chunk; /* the current chunk */
	/*
	 * chunk + 1: slots for that chunk are ready, and the files of `chunk` may have been moved
	 * to their archive; or 0
	 */
	uint64_t prepared;
	uint64_t retired_in; /* chunk + 1: a removed ring set has packets in that chunk; or 0 */
	/*
	 * If the memory is a file: its device and number, written by the session daemon that made
	 * it. A copy is another file.
	 */
	uint64_t device, file;
	/*
	 * CLOCK_MONOTONIC, written by the consumer; the daemon sees from it whether the consumer is
	 * working
	 */
	uint64_t alive_ns; /* its last step: a turn of its loop, or a stream written */
	/* when the session daemon ended unexpectedly; 0: one is connected */
	uint64_t orphaned_ns;
	uint64_t unattended_ns; /* sum of the time without a daemon */
	uint64_t due_ns;	/* when it will next drain its rings; 0: on request */
	uint64_t unused[2];
	/*
	 * The number of RING_SET orders that the session daemon has sent to the present consumer,
	 * or is about to send. The daemon writes it before an application can record into the set,
	 * so a consumer that has received as many knows all rings that can have records. While
	 * there is no daemon, the consumer replaces the number by that of the orders it received.
	 */
	uint64_t n_sets;
	/*
	 * Bytes of the trace directory's file system: free for its owner, and all; written by the
	 * consumer. 0: not known. Memory of older versions ends before them.
	 */
	uint64_t disk_free, disk_size;
};

#define KY_RESUME_SESSION_OLDEST offsetof(struct ky_resume_session, disk_free)

/* State of a stream at the begin of one of its files. Counts are from the begin of the session. */
struct ky_resume_slot {
	uint64_t chunk; /* KY_RESUME_INVALID: being written */
	uint64_t file;	/* number in the chunk */
	/* in the ring: position, records before it, and the end of their clocks */
	uint64_t pos, count, ts;
	uint64_t discarded; /* as reported in packets */
	uint64_t n_packets, n_bytes;
	/* at the begin of the chunk */
	uint64_t chunk_packets, chunk_discarded, chunk_too_big;
	uint64_t kept_from; /* records before the chunk's oldest file that still exists */
	/* events that were recorded and then removed with a file, cleared, or set apart with it */
	uint64_t removed, cleared, damaged;
	/* 0: the ring is read; else it was given up, and this - 1 files of the chunk are apart */
	uint64_t given_up;
};

/*
 * The slot in use is that of the greatest file of the greatest chunk that is not later than the
 * session's.
 */
struct ky_resume_stream {
	struct ky_resume_slot slots[2];
	/*
	 * Of a ring that was given up: its head at the last look, the records since then,
	 * and its counts of lost events: as they are believed, and as the ring had them.
	 */
	uint64_t abandoned_head, n_abandoned, lost[KY_LOST_REASONS], lost_seen[KY_LOST_REASONS];
};

static_assert(sizeof(struct ky_resume_session) == 112, "between consumers");
static_assert(sizeof(struct ky_resume_slot) == 128, "between consumers");

static inline uint64_t ky_resume_offset(uint32_t n_rings)
{
	return ((uint64_t)n_rings * sizeof(uint64_t) + 127) & ~(uint64_t)127;
}

/* Returns the size of the memfd "consumed" in bytes. */
static inline uint64_t ky_consumed_size(uint32_t n_rings)
{
	return ky_resume_offset(n_rings) + (uint64_t)n_rings * sizeof(struct ky_resume_stream);
}

#endif
