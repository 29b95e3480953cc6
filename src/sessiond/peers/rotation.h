/* SPDX-License-Identifier: MIT */
/*
 * Chunks of a session's trace: `rotate` ends the present one and has it moved below TRACE/archives,
 * `clear` throws it away, and schedules rotate by themselves. The consumer does it, exactly once
 * (consumerd/chunk.h). This part sends it one order at a time.
 */
#ifndef SESSIOND_PEERS_ROTATION_H
#define SESSIOND_PEERS_ROTATION_H

#include <time.h>

#include "sessiond/peers/barrier.h"

struct consumer;
struct session;

/* When a session is rotated, and which chunks stay. 0: never, and all of them. */
struct rotation_schedule {
	uint64_t timer_us, size;
	uint64_t max_disk, keep_free; /* bytes: of the trace, at most; free on its disk, at least */
	uint64_t keep_chunks, keep_bytes, keep_s; /* of the archives */
};

struct rotation {
	struct session *session;
	struct consumer *consumer;
	uint64_t chunk;	       /* the present one: all orders that were carried out */
	time_t begin;	       /* of the present chunk */
	uint64_t bytes;	       /* bytes that were written before it, at least */
	bool clears;	       /* the last order, perhaps of a predecessor */
	char *archive;	       /* of that order; "": none, or not known; NULL: there was no order */
	bool ongoing;	       /* the consumer has not answered it yet */
	struct op *op;	       /* done at its end, or when that is late; NULL: nobody waits */
	struct op rotated;     /* of the consumer's answer */
	struct barrier answer; /* until then */
	struct op late;
	char *error; /* why the last order failed, logged; NULL: it did not */
	char *path;  /* of the last chunk that was archived; NULL: none */
	unsigned n_archived;
	uint64_t was_cleared, n_cleared; /* events: before the last clear, and by it */
	struct rotation_schedule schedule;
	struct ky_timer timer, poll;
	struct barrier poll_barrier;
	struct op polled;
};

void rotation_init(struct rotation *r, struct session *s, struct consumer *c);
void rotation_deinit(struct rotation *r);
/*
 * Begins to archive the present chunk, or (clear) to throw it away. op (may be NULL) is done with
 * 0; -ENODATA: the chunk is empty and continues; -ETIMEDOUT: the consumer has not answered yet; or
 * another -errno. Returns 0, -EBUSY if another order is in flight, or -ENOMEM.
 */
int rotation_begin(struct rotation *r, bool clear, struct op *op);
/*
 * Returns the path of the last order's archive. The caller owns it. Returns NULL if allocation
 * fails.
 */
char *rotation_path(const struct rotation *r);
/*
 * The consumer says that the session is in this chunk. Believed if it is the one after the last:
 * the consumer carried out an order of a daemon that died before it heard of that. The owner of the
 * session can write any number.
 */
void rotation_adopt(struct rotation *r, uint64_t chunk);
/* Rotates every timer_us, and whenever so many bytes were written, and sends the bounds. */
void rotation_set_schedule(struct rotation *r, const struct rotation_schedule *schedule);

#endif
