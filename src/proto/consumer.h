/* SPDX-License-Identifier: MIT */
/*
 * Messages between the session daemon and the consumer of one session, on a SOCK_SEQPACKET pair that
 * the consumer inherits as descriptor 3. docs/protocol.md describes the conversation.
 */
#ifndef PROTO_CONSUMER_H
#define PROTO_CONSUMER_H

#include "proto/wire.h"

enum ky_cons_type {
	/* daemon -> consumer */
	KY_CONS_INIT = 1,
	KY_CONS_RING_SET = 2,
	KY_CONS_FLUSH = 3,
	KY_CONS_QUIT = 4,
	KY_CONS_ASK = 5,
	KY_CONS_SNAPSHOT = 6,
	KY_CONS_TIMERS = 10,
	KY_CONS_ROTATE = 7,
	KY_CONS_RETIRE = 8,
	KY_CONS_FORGET = 9,
	/* consumer -> daemon */
	KY_CONS_STATS = 16,
	KY_CONS_ERROR = 17,
	KY_CONS_ROTATED = 18,
	KY_CONS_ADOPT = 19,
	KY_CONS_ADOPTED = 20,
	KY_CONS_RETIRED = 21,
};

/*
 * First message, with one descriptor: the session's memory (src/abi/resume.h). Answered by STATS with cookie 0 once
 * the trace directory exists, or cannot be made. resume: 1 when a consumer of this session died before: the directory
 * exists, and recording goes on behind the last whole packet of each stream. RING_SETs that the dead one had are sent
 * again.
 *
 * rendezvous: path of the socket where the daemon's successor listens. When the daemon hangs up, a consumer that has
 * one goes on, and calls there until somebody answers, or the directory is removed. "": a hang-up means QUIT.
 */
#define KY_CONS_INIT_FIELDS(F)                                                                     \
	F(u32, version)                                                                            \
	F(str, session)                                                                            \
	F(str, output) /* absolute path of the trace directory; "": only drain and count */        \
	F(u32, resume)                                                                             \
	F(str, rendezvous)

/*
 * Second message, if it comes: this consumer writes what the rings hold now, beside another that drains them or none. It
 * copies each RING_SET when it gets it, never writes to a consumed descriptor (which may be read-only), and writes
 * nothing before QUIT.
 */
#define KY_CONS_SNAPSHOT_FIELDS(F)                                                                 \
	F(u64, max_size) /* bytes of packets; what is oldest is left out. 0: all that there is */

/*
 * Drain this ring set. Three descriptors: rings (read-only), consumed (read-write; src/abi/resume.h), metadata log
 * (read-only): the TSDL text of the trace that the set belongs to, appended to by the session daemon
 * before a program can record what it describes. The consumer copies it to DIR/metadata and must,
 * whenever it writes packets, read heads first and copy the log's new text second. Each `dir` has a
 * uuid of its own: babeltrace2 takes directories of one uuid for parts of one trace. So has each chunk
 * of it, made from this one (docs/trace-format.md).
 *
 * A set in overwrite mode is not drained, unless for a snapshot; its descriptors are kept for the daemon's successor.
 */
#define KY_CONS_RING_SET_FIELDS(F)                                                                 \
	F(u32, set)                                                                                \
	F(u32, stream_id)                                                                          \
	F(str, dir)  /* below the trace directory, as "ust/uid/0/64-bit": always below "ust" */    \
	F(str, name) /* of the stream files: NAME_N, N the ring's index */                         \
	F(u32, mode)                                                                               \
	F(u32, clock)                                                                              \
	F(u32, overwrite)                                                                          \
	F(u32, n_rings)                                                                            \
	F(u32, n_blocks)                                                                           \
	F(u32, block_size)                                                                         \
	F(u64, total_size)                                                                         \
	F(u64, uuid_hi) /* as 16 bytes big endian in packet headers and metadata */                \
	F(u64, uuid_lo)                                                                            \
	F(u64, file_size) /* bytes of a stream file, at most; 0: no limit, and one file NAME_N */  \
	F(u32, n_files)	  /* of a stream, at most: the oldest is removed; 0: all stay */           \
	F(u32, instance)  /* upper half of streams' instance numbers: for sets of one stream */

/* When to look at a ring set, in microseconds. After RING_SET, and again whenever it changes. Not to a snapshot's consumer. */
#define KY_CONS_TIMERS_FIELDS(F)                                                                   \
	F(u32, set)                                                                                \
	F(u64, switch_us) /* partly filled blocks are written this often; 0: at FLUSH and QUIT */  \
	F(u64, read_us)	  /* heads are looked at this often; 0: as often as the pace needs it */

/* Write out everything published so far, partly filled blocks too. Answered by STATS. */
#define KY_CONS_FLUSH_FIELDS(F) F(u32, cookie)

/* How things stand: answered by STATS at once, nothing is written out for it. */
#define KY_CONS_ASK_FIELDS(F) F(u32, cookie)

/*
 * FLUSH, and what is written so far becomes a chunk of its own, ARCHIVE; writing goes on in the next. Answered by STATS and
 * then ROTATED. archive "": what is written and what is in the rings is thrown away instead. Repeated when the consumer
 * died: chunk is that of the session's memory plus 1, else it has been done.
 */
#define KY_CONS_ROTATE_FIELDS(F)                                                                   \
	F(u32, cookie)                                                                             \
	F(u64, chunk)	/* that begins */                                                          \
	F(str, archive) /* name below TRACE/archives */

/*
 * Nobody will ever write the set again: it is written out, however long the disk takes, and its files are closed. Answered
 * by RETIRED, then STATS, which leaves the set out from then on. After the consumer's death RING_SET and RETIRE are
 * repeated, unless RETIRED has come.
 */
#define KY_CONS_RETIRE_FIELDS(F) F(u32, set)
/* RETIRED has been written down: it need not be repeated to a successor of the daemon. */
#define KY_CONS_FORGET_FIELDS(F) F(u32, set)

/* FLUSH, then STATS, then exit. A closed socket means the same. */
#define KY_CONS_QUIT_FIELDS(F) F(u32, cookie)

#define KY_CONS_STATS_FIELDS(F)                                                                    \
	F(u32, cookie)                                                                             \
	F(u64, recorded)  /* events in packets written so far */                                   \
	F(u64, discarded) /* events lost in the rings, all reasons */                              \
	F(u64, discarded_too_big)                                                                  \
	F(u64, discarded_refused) /* counted for the daemon, which refused their definition */     \
	F(u64, unwritten)	  /* events recorded that could not be written (disk full) */      \
	F(u64, bytes)		  /* written to stream files */                                    \
	F(u64, packets)                                                                            \
	F(u32, n_quarantined)	  /* rings given up because their control words made no sense */   \
	F(i32, status)		  /* 0, or -errno of the last failure that still stands */         \
	F(str, message)		  /* what and where failed, one line; "" when fine */              \
	F(u64, overwritten)	  /* events of a snapshot's rings before those that were there */  \
	F(u64, left_out)	  /* events that were there, but not within max_size */            \
	F(u64, removed)		  /* of the recorded events: with the oldest files */              \
	F(u64, cleared)		  /* of the recorded events: thrown away by ROTATE */              \
	F(u64, discarded_no_slot) /* of threads for which there was no ring */                     \
	F(u64, damaged)		  /* of the recorded events: set apart with damaged files */

/* The last counts of a set, as in STATS. */
#define KY_CONS_RETIRED_FIELDS(F)                                                                  \
	F(u32, set)                                                                                \
	F(u64, recorded)                                                                           \
	F(u64, discarded)                                                                          \
	F(u64, discarded_too_big)                                                                  \
	F(u64, discarded_refused)                                                                  \
	F(u64, unwritten)                                                                          \
	F(u64, bytes)                                                                              \
	F(u64, packets)                                                                            \
	F(u32, n_quarantined)                                                                      \
	F(u64, removed)                                                                            \
	F(u64, cleared)                                                                            \
	F(u64, chunk) /* that was written when it was retired */                                   \
	F(u64, kept)  /* of the recorded events: those in that chunk */                            \
	F(u64, discarded_no_slot)                                                                  \
	F(u64, damaged)

/* Something went wrong, or is fine again (status 0): shown by `kymo status`. */
#define KY_CONS_ERROR_FIELDS(F)                                                                    \
	F(i32, status)                                                                             \
	F(str, message)

/* status: 0; -ENODATA: the chunk has no packet, and goes on; or another -errno, it goes on too. */
#define KY_CONS_ROTATED_FIELDS(F)                                                                  \
	F(u32, cookie)                                                                             \
	F(i32, status)                                                                             \
	F(str, message) /* why not; one line */

/*
 * To a successor of the daemon: RETIRED of each set that there was no FORGET of, ADOPT for each set that a RING_SET brought
 * and that was not retired, with the same three descriptors, then ADOPTED, with the session's memory. The conversation goes on behind it; a successor that does not know the consumer's session answers with QUIT.
 */
#define KY_CONS_ADOPT_FIELDS(F)	  F(u32, set)
#define KY_CONS_ADOPTED_FIELDS(F) F(u32, n_sets)

/* All messages: struct, encoder and decoder come from a row, and where daemons send it, the sender (svc/msg-conn.h). */
#define KY_CONS_MESSAGES(M)                                                                        \
	M(ky_cons_init, KY_CONS_INIT, KY_CONS_INIT_FIELDS)                                         \
	M(ky_cons_ring_set, KY_CONS_RING_SET, KY_CONS_RING_SET_FIELDS)                             \
	M(ky_cons_flush, KY_CONS_FLUSH, KY_CONS_FLUSH_FIELDS)                                      \
	M(ky_cons_quit, KY_CONS_QUIT, KY_CONS_QUIT_FIELDS)                                         \
	M(ky_cons_ask, KY_CONS_ASK, KY_CONS_ASK_FIELDS)                                            \
	M(ky_cons_snapshot, KY_CONS_SNAPSHOT, KY_CONS_SNAPSHOT_FIELDS)                             \
	M(ky_cons_timers, KY_CONS_TIMERS, KY_CONS_TIMERS_FIELDS)                                   \
	M(ky_cons_rotate, KY_CONS_ROTATE, KY_CONS_ROTATE_FIELDS)                                   \
	M(ky_cons_rotated, KY_CONS_ROTATED, KY_CONS_ROTATED_FIELDS)                                \
	M(ky_cons_retire, KY_CONS_RETIRE, KY_CONS_RETIRE_FIELDS)                                   \
	M(ky_cons_forget, KY_CONS_FORGET, KY_CONS_FORGET_FIELDS)                                   \
	M(ky_cons_retired, KY_CONS_RETIRED, KY_CONS_RETIRED_FIELDS)                                \
	M(ky_cons_stats, KY_CONS_STATS, KY_CONS_STATS_FIELDS)                                      \
	M(ky_cons_error, KY_CONS_ERROR, KY_CONS_ERROR_FIELDS)                                      \
	M(ky_cons_adopt, KY_CONS_ADOPT, KY_CONS_ADOPT_FIELDS)                                      \
	M(ky_cons_adopted, KY_CONS_ADOPTED, KY_CONS_ADOPTED_FIELDS)

KY_CONS_MESSAGES(KY_MSG_DECLARE)

#endif
