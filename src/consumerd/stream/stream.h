/* SPDX-License-Identifier: MIT */
/*
 * One stream: the way of records from a source to a sink. Stream sets use it, once in each round of
 * draining: look, then (metadata), then write.
 *
 *   source ── pieces ──▶ stream.c: packets ── batch ──▶ sink
 *                        stream-chunk.c: files, chunks, restarts ──▶ slots
 *
 * Invariant: a source's records are taken, so that writers get the room back, only when they are in
 * the sink (or, at the end, counted as unwritten). So a full disk costs nothing until the ring is
 * full as well. After a crash, the stream continues at the position in the last packet's header,
 * not at the one that writers see. Without a packet in the present file, it continues at the
 * position in the slot that was stored for the file (abi/resume.h). That is exact, too, because
 * nothing is recorded into the file before the slot exists.
 *
 * events_discarded: readers look at differences between packets. It restarts in each chunk, as the
 * packets' numbers do. So if a stream's first packet in a chunk has losses, an empty, earlier
 * packet without losses precedes it. Losses after the last record get an empty packet at a flush.
 */
#ifndef CONSUMERD_STREAM_STREAM_H
#define CONSUMERD_STREAM_STREAM_H

#include "consumerd/sink/sink.h"
#include "consumerd/source/source.h"
#include "consumerd/stream/fault.h"
#include "consumerd/stream/pace.h"
#include "consumerd/stream/slots.h"
#include "proto/consumer.h"

/* The end of the stream's packets. */
struct stream_end {
	uint64_t begin, ts;    /* of the last packet: when it begins and ends */
	uint64_t n_discarded;  /* events that packets have reported, since the session began */
	uint64_t n_events;     /* in packets, since then */
	struct ky_owner owner; /* of the last packet with records */
};

struct stream {
	struct source *source;	     /* borrowed */
	struct sink_stream *to;	     /* owned; NULL: the stream could not be opened */
	struct ky_ctf_packet header; /* the common part of all packets of the stream */
	uint64_t since; /* clock when we got the source: used if there never was a record */
	struct stream_end end;
	struct slots slots;
	uint64_t n_unwritten;
	uint64_t n_of_others; /* losses of streams without a file, which this one reports */
	struct pace pace;
	struct fault fault;
	bool due; /* to be written in this round */
};

/* Begins a stream. Takes `to`. */
void stream_init(struct stream *s, struct source *source, struct sink_stream *to, uint64_t now_ns);
void stream_deinit(struct stream *s);
/*
 * Continues where an earlier consumer stopped. Returns 0 or -errno; -EBADMSG: what is in the sink
 * is not of this stream.
 */
int stream_resume(struct stream *s, uint64_t chunk);
/* Looks at the source, and decides what is due. Returns as source_ops.look. */
int stream_look(struct stream *s, bool flush, uint64_t now_ns);
/*
 * Writes the records that were published before the last look, if they are due: whole blocks, or
 * everything with flush or if the source is released. Returns whether it wrote something, or
 * -errno; then the rest waits for some time for the next call.
 */
int stream_write(struct stream *s, bool flush, uint64_t now_ns);
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
 * Gives the source up for ever, and sets the stream's files in the present chunk apart, because
 * readers may be unable to decode them. alone: no other program has the source, and the losses that
 * it reports do not count. Returns 0, or -errno if a file stays.
 */
int stream_set_apart(struct stream *s, uint64_t clock_now, bool alone);
/*
 * Ends the stream: counts the rest of the source as unwritten, if possible in the trace, too.
 * clock_now: no record is later.
 */
void stream_give_up(struct stream *s, uint64_t clock_now);
/* Returns the losses that no packet reports. */
uint64_t stream_count_unreported(const struct stream *s);
/*
 * Reports n losses of other streams, too, which are not later than clock_now. Returns 0, or -errno
 * if there is no room.
 */
int stream_report_for_others(struct stream *s, uint64_t n, uint64_t clock_now);

/* --- between stream.c and stream-chunk.c --- */

/* Returns the losses so far; never less than a packet has reported. */
uint64_t stream_count_discarded(const struct stream *s, const struct stream_end *end);
/* Moves *end behind the stream's next packet, which is in the sink, or need not be. */
void stream_account(const struct stream *s, struct stream_end *end, const struct ky_ctf_packet *p);
/*
 * Appends the packet without losses that must precede a first packet with losses. Its position is
 * that up to which the source is taken. Returns 0 or -errno.
 */
int stream_append_base(struct stream *s);
/*
 * Appends an empty packet for losses that no packet reports yet. until: the clock at which it ends
 * if no record can follow that is earlier; otherwise 0, for a moment after the last packet. Returns
 * 0 or -errno.
 */
int stream_append_losses(struct stream *s, uint64_t until);
/*
 * Begins the next file. Returns 0, or -errno if the events in the file to be removed cannot be
 * counted: then the present file continues until another try.
 */
int stream_next_file(struct stream *s);

static inline bool stream_is_last_of_block(const struct ky_drain_piece *piece)
{
	return piece->next != piece->pos + piece->len;
}

#endif
