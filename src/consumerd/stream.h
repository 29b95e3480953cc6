/* SPDX-License-Identifier: MIT */
/*
 * One ring on its way into its stream files: one, or one after another where their size is limited, and others in each
 * chunk. Used by ring sets, once in each round of draining: look, then (metadata), then write.
 *
 * Invariant: a ring's data is given back to its writers only when it is in the file (or, at the
 * end, counted as unwritten), so a full disk costs nothing until the ring is full as well. The
 * position that goes on after a crash is that in the last packet's header, not the one writers see; or, without a
 * packet in the present file, that in the slot that was made for it (abi/resume.h), which is as true because nothing is
 * recorded into the file before the slot is there.
 *
 * A slowly filled ring is let fill to the half, so that few large writes are made, past the page
 * cache where that is possible; then somebody who suddenly writes fast finds the other half free.
 * One that fills fast is written as blocks come, into the page cache, which takes them without
 * waiting for the disk. A flush every second bounds how long data waits.
 *
 * events_discarded: readers look at differences between packets. It begins anew in each chunk, as the packets' numbers do.
 * So a stream's first packet in a chunk that has losses is preceded by an empty, earlier one without, and losses after the last record get an empty
 * packet at a flush.
 */
#ifndef CONSUMERD_STREAM_H
#define CONSUMERD_STREAM_H

#include "abi/resume.h"
#include "consumerd/fault.h"
#include "consumerd/stream-file.h"
#include "proto/consumer.h"
#include "ring/drain.h"

struct stream {
	struct ky_drain drain;
	struct stream_file file;
	struct ky_ctf_packet header; /* what all packets of the stream have in common */
	uint64_t since;	    /* clock when we got the ring: stands in where there is no record */
	uint64_t *consumed; /* what writers see; borrowed */
	struct ky_resume_slot base;	 /* where the present file began */
	struct ky_resume_stream *resume; /* borrowed */
	unsigned int slot;		 /* of `base` in it */
	uint64_t begin, ts;		 /* of the last packet: when it begins and ends */
	uint64_t n_discarded;		 /* that packets have told, since the session began */
	uint64_t n_events, n_unwritten;
	struct fault fault;
	uint64_t looked_ns; /* when the head was fetched */
	uint64_t fill_ns; /* how long writers take to fill the ring: falls at once, rises slowly */
	bool due;	  /* to be written in this round */
	/* of threads' rings */
	bool per_thread;
	bool released;	  /* nobody has the ring now: all of it is due */
	uint64_t drained; /* slot word with which all of it was written */
};

/*
 * Everywhere below: place.dir -1 means that the session keeps no files; events are counted only.
 */
void stream_init(struct stream *s, uint64_t now_ns);
void stream_deinit(struct stream *s);
/* Goes on where an earlier consumer stopped. place NULL: the chunk has no file. -EBADMSG: what it left is not of this stream. */
int stream_resume(struct stream *s, const struct stream_place *place, uint64_t chunk);
/* Fetches the ring's head, and decides what is due. False once the ring is quarantined. */
bool stream_look(struct stream *s, bool flush, uint64_t now_ns);
/*
 * Writes what was published before the last look, if it is due: whole blocks, with flush or if it is released everything. Returns
 * whether something was written or -errno; then the rest waits for the next call after a while.
 */
int stream_write(struct stream *s, const struct stream_place *place, bool flush, uint64_t now_ns);
/* Nothing is left to be written of what was there at the last look. */
bool stream_is_drained(const struct stream *s);
/* Has the present chunk a packet of it? */
bool stream_has_packets(const struct stream *s);
/*
 * Makes ready for a chunk that begins where the stream is now; drop: behind what was published before the last look, as if
 * it were in none. It has begun when the session's memory says so; then stream_enter() is due.
 */
void stream_prepare(struct stream *s, uint64_t chunk, bool drop);
void stream_enter(struct stream *s, uint64_t chunk);
/* Of the recorded events: those in the present chunk. */
uint64_t stream_kept(const struct stream *s);
/* Adds the stream's counts to *stats. */
void stream_add_stats(const struct stream *s, struct ky_cons_stats *stats);
/* Of packets that could be written now: bytes of those that end later than ts. */
uint64_t stream_size_after(const struct stream *s, uint64_t ts);
/* Never writes the others; returns the number of their events. */
uint64_t stream_leave_out(struct stream *s, uint64_t ts);
/*
 * The ring is given up for ever, and the stream's files in the present chunk are set apart: nobody can say whether readers
 * can decode them. alone: no other program has the ring, and what it says of losses counts for nothing. 0, or -errno when
 * a file stays.
 */
int stream_set_apart(
	struct stream *s, const struct stream_place *place, uint64_t clock_now, bool alone);
/* The same of a resumed stream that an earlier consumer set apart. */
void stream_leave_apart(struct stream *s);
/* Counts what programs record into the ring, and lose, since then. */
void stream_look_apart(struct stream *s);
/* The end: counts what is still in the ring as unwritten, in the trace also if that is possible. */
void stream_give_up(struct stream *s, const struct stream_place *place);

#endif
