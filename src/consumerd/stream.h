/* SPDX-License-Identifier: MIT */
/*
 * One ring, and the stream files that it is written to: one file, several successive ones if their
 * size is limited, and others in each chunk. Ring sets use it, once in each round of draining:
 * look, then (metadata), then write.
 *
 * Invariant: the writers get a ring's data back only when it is in the file (or, at the end,
 * counted as unwritten). So a full disk costs nothing until the ring is full as well. After a
 * crash, the stream continues at the position in the last packet's header, not at the one that
 * writers see. Without a packet in the present file, it continues at the position in the slot that
 * was made for the file (abi/resume.h). That is exact, too, because nothing is recorded into the
 * file before the slot exists.
 *
 * The consumer lets a slowly filled ring fill to the half. So it makes few large writes, which
 * bypass the page cache if possible. A writer that suddenly becomes fast finds the other half free.
 * A ring that fills fast is written block by block, into the page cache, which takes them without
 * waiting for the disk. A flush every second limits how long data waits.
 *
 * events_discarded: readers look at differences between packets. It restarts in each chunk, as the
 * packets' numbers do. So if a stream's first packet in a chunk has losses, an empty, earlier
 * packet without losses precedes it. Losses after the last record get an empty packet at a flush.
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
	struct ky_ctf_packet header; /* the common part of all packets of the stream */
	uint64_t since;		     /* clock when we got the ring: used if there is no record */
	uint64_t *consumed;	     /* what writers see; borrowed */
	struct ky_resume_slot base;  /* where the present file began */
	struct ky_resume_stream *resume; /* borrowed */
	unsigned int slot;		 /* of `base` in it */
	uint64_t begin, ts;		 /* of the last packet: when it begins and ends */
	uint64_t n_discarded;		 /* that packets have reported, since the session began */
	uint64_t n_events, n_unwritten;
	struct fault fault;
	uint64_t looked_ns; /* when the head was fetched */
	uint64_t fill_ns; /* how long writers take to fill the ring: falls at once, rises slowly */
	bool due;	  /* to be written in this round */
	/* of threads' rings */
	bool per_thread;
	bool released;	  /* no thread has the ring now: all of it is due */
	uint64_t drained; /* slot word with which all of it was written */
};

/*
 * In all functions below, place.dir -1 means that the session keeps no files: events are only
 * counted.
 */
void stream_init(struct stream *s, uint64_t now_ns);
void stream_deinit(struct stream *s);
/*
 * Continues where an earlier consumer stopped. place NULL: the chunk has no file. -EBADMSG: the
 * files are not of this stream.
 */
int stream_resume(struct stream *s, const struct stream_place *place, uint64_t chunk);
/* Fetches the ring's head, and decides what is due. Returns false for a quarantined ring. */
bool stream_look(struct stream *s, bool flush, uint64_t now_ns);
/*
 * Writes the records that were published before the last look, if they are due: whole blocks, or
 * everything with flush or if the ring is released. Returns whether it wrote something, or -errno;
 * then the rest waits for some time for the next call.
 */
int stream_write(struct stream *s, const struct stream_place *place, bool flush, uint64_t now_ns);
/* Returns true if all records of the last look are written. */
bool stream_is_drained(const struct stream *s);
/* Returns true if the present chunk has a packet of the stream. */
bool stream_has_packets(const struct stream *s);
/*
 * Prepares a chunk that begins where the stream is now; drop: behind the records that were
 * published before the last look, as if they were in no chunk. The chunk has begun when the
 * session's memory says so; then the caller calls stream_enter().
 */
void stream_prepare(struct stream *s, uint64_t chunk, bool drop);
void stream_enter(struct stream *s, uint64_t chunk);
/* Returns how many of the recorded events are in the present chunk. */
uint64_t stream_kept(const struct stream *s);
/* Adds the stream's counts to *stats. */
void stream_add_stats(const struct stream *s, struct ky_cons_stats *stats);
/* Returns the bytes of packets that could be written now and end later than ts. */
uint64_t stream_size_after(const struct stream *s, uint64_t ts);
/* Leaves out the packets that end at ts or before. Returns the number of their events. */
uint64_t stream_leave_out(struct stream *s, uint64_t ts);
/*
 * Gives the ring up for ever, and sets the stream's files in the present chunk apart, because
 * readers may be unable to decode them. alone: no other program has the ring, and the losses that
 * it reports do not count. Returns 0, or -errno if a file stays.
 */
int stream_set_apart(
	struct stream *s, const struct stream_place *place, uint64_t clock_now, bool alone);
/* Gives up the ring of a resumed stream that an earlier consumer set apart. */
void stream_leave_apart(struct stream *s);
/* Counts the events that programs record into the ring, and lose, since then. */
void stream_look_apart(struct stream *s);
/* Ends the stream: counts the rest of the ring as unwritten, if possible in the trace, too. */
void stream_give_up(struct stream *s, const struct stream_place *place);

#endif
