/* SPDX-License-Identifier: MIT */
/*
 * Messages between the session daemon and the consumer of one session, on a SOCK_SEQPACKET pair.
 * The consumer inherits its end as descriptor 3. docs/protocol.md describes the conversation.
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
	KY_CONS_BOUNDS = 15,
	KY_CONS_ROTATE = 7,
	KY_CONS_RETIRE = 8,
	KY_CONS_FORGET = 9,
	/* consumer -> daemon */
	KY_CONS_STATS = 16,
	KY_CONS_ERROR = 17,
	KY_CONS_ROTATED = 18,
	KY_CONS_ADOPT = 19,
	KY_CONS_ADOPTED = 20,
	KY_CONS_ADOPT_LOG = 45,
	KY_CONS_RETIRED = 21,
	KY_CONS_DAMAGED = 22,
	KY_CONS_GROWN = 23,
	/* daemon -> consumer */
	KY_CONS_KERNEL_SET = 32,
	KY_CONS_KERNEL_CPU = 33,
	KY_CONS_KERNEL_EVENT = 34,
	KY_CONS_KERNEL_TASKS = 35,
	KY_CONS_KERNEL_THREADS = 36,
	KY_CONS_KERNEL_DUMP = 37,
	KY_CONS_KERNEL_SYMBOLS = 43,
	/* consumer -> daemon */
	KY_CONS_KERNEL_ADOPT = 38,
	KY_CONS_KERNEL_ADOPT_CPU = 39,
	KY_CONS_KERNEL_CLOCK = 44,
	/* daemon -> consumer */
	KY_CONS_SAMPLES_SET = 40,
	KY_CONS_SAMPLES_CPU = 41,
};

/*
 * The first message, with one descriptor: the session's memory (src/abi/resume.h). The consumer
 * answers with STATS with cookie 0 once the trace directory exists, or cannot be made. resume is 1
 * if an earlier consumer of this session died: the directory exists, and recording continues after
 * the last whole packet of each stream. The daemon sends the dead consumer's RING_SETs again.
 *
 * rendezvous: path of the socket where the daemon's successor listens. If the daemon hangs up, a
 * consumer with such a path continues, and calls there until somebody answers or the directory is
 * removed. "": a hang-up means QUIT.
 *
 * place: 1 if the session only takes snapshots. Their consumers write below the directory or into
 * it, this one does not.
 */
#define KY_CONS_INIT_FIELDS(F)                                                                     \
	F(u32, version)                                                                            \
	F(str, session)                                                                            \
	F(str, output) /* absolute path of the trace directory; "": only drain and count */        \
	F(u32, resume)                                                                             \
	F(str, rendezvous)                                                                         \
	F(later_u32, place)

/*
 * The second message, for a consumer that writes a snapshot: the rings' present contents. Another
 * consumer may drain the rings at the same time. The snapshot's consumer copies each RING_SET when
 * it arrives, never writes to a consumed descriptor (which may be read-only), and writes nothing
 * before QUIT.
 */
#define KY_CONS_SNAPSHOT_FIELDS(F)                                                                 \
	F(u64, max_size) /* bytes of packets; what is oldest is left out. 0: all that there is */  \
	F(str, reason)	 /* what triggered it, for the metadata; "": a command */

/*
 * Asks the consumer to drain this ring set. It has three descriptors: rings (read-only), consumed
 * (read-write; src/abi/resume.h), metadata log (read-only). The log is the TSDL text of the set's
 * trace. The session daemon appends to it before an application can record the described events.
 * The consumer copies it to DIR/metadata. Whenever it writes packets, it must read heads first and
 * copy the log's new text second.
 *
 * Each `dir` has its own uuid: babeltrace2 takes directories of one uuid for parts of one trace.
 * Each chunk of it has its own uuid too, made from this one (docs/trace-format.md).
 *
 * The consumer does not drain a set in overwrite mode, unless for a snapshot. It keeps the set's
 * descriptors for the daemon's successor.
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
	F(u32, instance)  /* upper half of streams' instance numbers: for sets of one stream */    \
	F(later_u32, n_home)

/*
 * Sets when to examine a ring set, in microseconds. The daemon sends it after RING_SET, and again
 * whenever it changes, but not to a snapshot's consumer.
 */
#define KY_CONS_TIMERS_FIELDS(F)                                                                   \
	F(u32, set)                                                                                \
	F(u64, switch_us) /* partly filled blocks are written this often; 0: at FLUSH and QUIT */  \
	F(u64, read_us)	  /* heads are looked at this often; 0: as often as the pace needs it */

/*
 * Announces the buffers of a kernel channel: a tracefs instance. It has four descriptors: memory
 * (read-write; src/abi/kernel.h), metadata log (read-only), the instance's free_buffer, and the
 * instance's directory, which holds the lock. The consumer keeps the last two open, so that the
 * instance outlives a session daemon, and does nothing else with them.
 *
 * The set's number comes from the same sequence as those of ring sets, and TIMERS, ROTATE, RETIRE
 * and the counts mean the same. KERNEL_TASKS, KERNEL_THREADS and KERNEL_EVENTs follow, then a
 * KERNEL_CPU for each CPU. The consumer drains a CPU from its KERNEL_CPU on. After the consumer's
 * death the daemon sends all this again, with the same open files.
 */
#define KY_CONS_KERNEL_SET_FIELDS(F)                                                               \
	F(u32, set)                                                                                \
	F(u32, stream_id)                                                                          \
	F(str, dir)	    /* below the trace directory: "kernel" */                              \
	F(str, name)	    /* of the stream files: NAME_N, N the CPU */                           \
	F(u32, overwrite)   /* enum ky_kernel_mode */                                              \
	F(u32, clock)	    /* enum ky_clock: cycles, or nanoseconds of CLOCK_MONOTONIC */         \
	F(u32, n_cpus)	    /* possible ones */                                                    \
	F(u32, subbuf_size) /* bytes of a sub-buffer with its head: what one read returns */       \
	F(u64, buffer_size) /* bytes for each CPU */                                               \
	F(u64, uuid_hi)                                                                            \
	F(u64, uuid_lo)                                                                            \
	F(u64, file_size)                                                                          \
	F(u32, n_files)                                                                            \
	F(u32, dump_cpu) /* the first online one, whose stream gets the state dump */              \
	F(u32, may_map)	 /* for a snapshot: 1: maps the buffers; 0: tracing is off, reads them */

enum ky_kernel_mode {
	KY_KERNEL_DISCARD,
	KY_KERNEL_SNAPSHOT, /* the oldest events make room; only snapshots read them */
};

/*
 * Brings the files of a CPU: trace_pipe_raw (O_NONBLOCK), stats, and trace_pipe_raw of the instance
 * that follows threads. All are open for reading only.
 */
#define KY_CONS_KERNEL_CPU_FIELDS(F)                                                               \
	F(u32, set)                                                                                \
	F(u32, cpu)

/*
 * Describes an event. Its text is in the metadata log already. The daemon waits for the answer to
 * an ASK before it enables the event in the kernel. The same `kernel_id` again replaces the earlier
 * description for future records.
 */
#define KY_CONS_KERNEL_EVENT_FIELDS(F)                                                             \
	F(u32, set)                                                                                \
	F(u32, kernel_id) /* in the kernel's records */                                            \
	F(u32, id)	  /* in the trace */                                                       \
	F(u32, min)	  /* bytes that a record has at least */                                   \
	F(bytes, steps)	  /* struct ky_kstep each (kernel/program.h) */                            \
	F(str, format)	  /* the kernel's description, for the trace's index */                    \
	F(bytes, desc)	  /* its fields, for the filters (proto/desc.h) */                         \
	F(bytes, filters) /* programs, each as `bytes`, one of which must pass; empty: no filter */

/* How the instance that follows threads describes them: struct ky_ktasks (kernel/program.h). */
#define KY_CONS_KERNEL_TASKS_FIELDS(F)                                                             \
	F(u32, set)                                                                                \
	F(u32, subbuf_size)                                                                        \
	F(bytes, tasks)

/* Threads that exist: struct ky_kernel_thread each (abi/kernel.h). */
#define KY_CONS_KERNEL_THREADS_FIELDS(F)                                                           \
	F(u32, set)                                                                                \
	F(bytes, threads)

/*
 * A part of a state dump, as finished payloads: struct ky_kernel_dump_record, the bytes, and so on.
 * The consumer writes all parts into the stream of the set's dump_cpu, at one time. It does not
 * drain that CPU between the first part and the last, for at most two seconds. A part that it knows
 * already has no effect.
 */
#define KY_CONS_KERNEL_DUMP_FIELDS(F)                                                              \
	F(u32, set)                                                                                \
	F(u32, number) /* of the dump in the set, from 1 */                                        \
	F(u32, part)   /* from 1 */                                                                \
	F(u32, last)   /* 1: of the last part */                                                   \
	F(u64, clock)  /* its time; 0: that of the stream's last record */                         \
	F(bytes, records)

/*
 * Brings /proc/kallsyms, open for reading: the consumer writes the names of the functions that are
 * in the set's kernel stacks into the trace's index.
 */
#define KY_CONS_KERNEL_SYMBOLS_FIELDS(F) F(u32, set)

/*
 * Announces CPU samples, with two descriptors: memory (read-write; src/abi/kernel.h, the page has
 * 128 KiB), and metadata log (read-only). Its number is one of those of ring sets. A SAMPLES_CPU
 * follows for each CPU, when the sampled process is known; after the consumer's death the daemon
 * sends all again, and keeps the buffers mapped meanwhile.
 */
#define KY_CONS_SAMPLES_SET_FIELDS(F)                                                              \
	F(u32, set)                                                                                \
	F(u32, stream_id)                                                                          \
	F(str, dir)  /* below the trace directory: "kernel" */                                     \
	F(str, name) /* of the stream files: NAME_N, N the CPU */                                  \
	F(u32, clock)                                                                              \
	F(u32, n_cpus) /* possible ones */                                                         \
	F(u64, uuid_hi)                                                                            \
	F(u64, uuid_lo)                                                                            \
	F(u32, counts_lost) /* 1: reading an event returns its count, and how many were lost */    \
	F(u64, ns)	    /* a reading of perf's clock, 0 if it is the session's */              \
	F(u64, clock_at)    /* of the session's clock, at the same time */

/* Brings the perf event of a CPU, whose buffer has a page and 512 KiB. */
#define KY_CONS_SAMPLES_CPU_FIELDS(F)                                                              \
	F(u32, set)                                                                                \
	F(u32, cpu)

/*
 * Limits the trace on disk; 0: no limit. The consumer removes the oldest archived chunks that are
 * beyond one of the limits. Sent after INIT if there are limits, and when they change.
 */
#define KY_CONS_BOUNDS_FIELDS(F)                                                                   \
	F(u64, max_disk)    /* bytes of the whole trace */                                         \
	F(u64, keep_free)   /* bytes that stay free on its file system */                          \
	F(u64, keep_chunks) /* archived ones */                                                    \
	F(u64, keep_bytes)  /* of archived chunks */                                               \
	F(u64, keep_s)	    /* seconds since a chunk was archived */

/*
 * Writes out everything published so far, partly filled blocks too. The consumer answers with
 * STATS.
 */
#define KY_CONS_FLUSH_FIELDS(F) F(u32, cookie)

/* Asks for the counts. The consumer answers with STATS at once, and writes nothing out for it. */
#define KY_CONS_ASK_FIELDS(F) F(u32, cookie)

/*
 * Does a FLUSH, then makes the data written so far a chunk of its own, ARCHIVE. Writing continues
 * in the next chunk. The consumer answers with STATS and then ROTATED. archive "": the consumer
 * throws away the written data and the contents of the rings instead.
 *
 * If the consumer died, the daemon sends it again: if the chunk is that of the session's memory
 * plus 1, the new consumer does it, else it has been done.
 */
#define KY_CONS_ROTATE_FIELDS(F)                                                                   \
	F(u32, cookie)                                                                             \
	F(u64, chunk)	/* number of the chunk that begins */                                      \
	F(str, archive) /* name below TRACE/archives */

/*
 * Nobody will ever write the set again. The consumer writes it out, however long the disk takes,
 * and closes its files. It answers with RETIRED, then with STATS, which omits the set from then on.
 * After the consumer's death the daemon repeats RING_SET and RETIRE, unless RETIRED has arrived.
 */
#define KY_CONS_RETIRE_FIELDS(F) F(u32, set)
/* The daemon has written RETIRED to its journal: the consumer need not repeat it to a successor. */
#define KY_CONS_FORGET_FIELDS(F) F(u32, set)

/* Does a FLUSH, sends STATS, and exits. A closed socket means the same. */
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
	F(u64, cleared)		  /* of the recorded events: removed by ROTATE */                  \
	F(u64, discarded_no_slot) /* of threads for which there was no ring */                     \
	F(u64, damaged)		  /* of the recorded events: set apart with damaged files */       \
	F(u32, fullest)	       /* thousandths of a buffer that were full at any look, at most */   \
	F(u64, expired_chunks) /* removed for BOUNDS, ever */                                      \
	F(u64, expired_events) /* of the recorded events: in them */                               \
	F(u64, expired_bytes)                                                                      \
	F(u64, disk_bytes)	      /* of the trace, if BOUNDS limits them */                    \
	F(u64, discarded_interrupted) /* of threads that a debugger steps */

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
	F(u64, chunk) /* the present chunk when the set was retired */                             \
	F(u64, kept)  /* of the recorded events: those in that chunk */                            \
	F(u64, discarded_no_slot)                                                                  \
	F(u64, damaged)                                                                            \
	F(u64, discarded_interrupted)

/*
 * A program has damaged a ring of this set, which programs share: programs that start later are to
 * get another one. Sent once to each daemon.
 */
#define KY_CONS_DAMAGED_FIELDS(F) F(u32, set)

/*
 * Rings of this set have grown beyond their home blocks: the daemon is to give the memory back when
 * they no longer need it. Sent at most once a second.
 */
#define KY_CONS_GROWN_FIELDS(F) F(u32, set)

/*
 * The kernel's stamp of a record that the daemon made after a reading of the session's clock, which
 * the consumer has read again when it found the record (src/kernel/marker.h).
 */
#define KY_CONS_KERNEL_CLOCK_FIELDS(F)                                                             \
	F(u32, set)                                                                                \
	F(u64, before)                                                                             \
	F(u64, at)                                                                                 \
	F(u64, after)

/* Reports a fault, or that it is over (status 0). `kymo status` shows it. */
#define KY_CONS_ERROR_FIELDS(F)                                                                    \
	F(i32, status)                                                                             \
	F(str, message)

/* status: 0; -ENODATA: the chunk has no packet, and goes on; or another -errno, it goes on too. */
#define KY_CONS_ROTATED_FIELDS(F)                                                                  \
	F(u32, cookie)                                                                             \
	F(i32, status)                                                                             \
	F(str, message) /* why not; one line */

/*
 * Sent to a successor of the daemon: RETIRED of each set without a FORGET; ADOPT_LOG for each
 * trace's metadata log that RING_SET or ADOPT_LOG brought, with its descriptor: the trace goes on
 * if it has no set now; ADOPT for each set that was not retired, with the same three descriptors;
 * then ADOPTED, with the session's memory. The conversation continues after it. A successor that
 * does not know the consumer's session answers with QUIT.
 *
 * The daemon sends ADOPT_LOG, too: to a consumer that begins, for each trace of the session, before
 * RING_SET.
 */
#define KY_CONS_ADOPT_LOG_FIELDS(F)                                                                \
	F(u64, uuid_hi)                                                                            \
	F(u64, uuid_lo)
#define KY_CONS_ADOPT_FIELDS(F)	  F(u32, set)
#define KY_CONS_ADOPTED_FIELDS(F) F(u32, n_sets)

/* The same for each KERNEL_SET, and then for each CPU of it: with the same descriptors. */
#define KY_CONS_KERNEL_ADOPT_FIELDS(F) F(u32, set)
#define KY_CONS_KERNEL_ADOPT_CPU_FIELDS(F)                                                         \
	F(u32, set)                                                                                \
	F(u32, cpu)

/*
 * The table of all messages. Each row makes a struct, an encoder and a decoder, and a sender for
 * messages from daemons (svc/msg-conn.h).
 */
#define KY_CONS_MESSAGES(M)                                                                        \
	M(ky_cons_init, KY_CONS_INIT, KY_CONS_INIT_FIELDS)                                         \
	M(ky_cons_ring_set, KY_CONS_RING_SET, KY_CONS_RING_SET_FIELDS)                             \
	M(ky_cons_flush, KY_CONS_FLUSH, KY_CONS_FLUSH_FIELDS)                                      \
	M(ky_cons_quit, KY_CONS_QUIT, KY_CONS_QUIT_FIELDS)                                         \
	M(ky_cons_ask, KY_CONS_ASK, KY_CONS_ASK_FIELDS)                                            \
	M(ky_cons_snapshot, KY_CONS_SNAPSHOT, KY_CONS_SNAPSHOT_FIELDS)                             \
	M(ky_cons_timers, KY_CONS_TIMERS, KY_CONS_TIMERS_FIELDS)                                   \
	M(ky_cons_bounds, KY_CONS_BOUNDS, KY_CONS_BOUNDS_FIELDS)                                   \
	M(ky_cons_rotate, KY_CONS_ROTATE, KY_CONS_ROTATE_FIELDS)                                   \
	M(ky_cons_rotated, KY_CONS_ROTATED, KY_CONS_ROTATED_FIELDS)                                \
	M(ky_cons_retire, KY_CONS_RETIRE, KY_CONS_RETIRE_FIELDS)                                   \
	M(ky_cons_forget, KY_CONS_FORGET, KY_CONS_FORGET_FIELDS)                                   \
	M(ky_cons_retired, KY_CONS_RETIRED, KY_CONS_RETIRED_FIELDS)                                \
	M(ky_cons_damaged, KY_CONS_DAMAGED, KY_CONS_DAMAGED_FIELDS)                                \
	M(ky_cons_grown, KY_CONS_GROWN, KY_CONS_GROWN_FIELDS)                                      \
	M(ky_cons_stats, KY_CONS_STATS, KY_CONS_STATS_FIELDS)                                      \
	M(ky_cons_error, KY_CONS_ERROR, KY_CONS_ERROR_FIELDS)                                      \
	M(ky_cons_adopt_log, KY_CONS_ADOPT_LOG, KY_CONS_ADOPT_LOG_FIELDS)                          \
	M(ky_cons_adopt, KY_CONS_ADOPT, KY_CONS_ADOPT_FIELDS)                                      \
	M(ky_cons_adopted, KY_CONS_ADOPTED, KY_CONS_ADOPTED_FIELDS)                                \
	M(ky_cons_kernel_set, KY_CONS_KERNEL_SET, KY_CONS_KERNEL_SET_FIELDS)                       \
	M(ky_cons_kernel_cpu, KY_CONS_KERNEL_CPU, KY_CONS_KERNEL_CPU_FIELDS)                       \
	M(ky_cons_kernel_event, KY_CONS_KERNEL_EVENT, KY_CONS_KERNEL_EVENT_FIELDS)                 \
	M(ky_cons_kernel_tasks, KY_CONS_KERNEL_TASKS, KY_CONS_KERNEL_TASKS_FIELDS)                 \
	M(ky_cons_kernel_threads, KY_CONS_KERNEL_THREADS, KY_CONS_KERNEL_THREADS_FIELDS)           \
	M(ky_cons_kernel_dump, KY_CONS_KERNEL_DUMP, KY_CONS_KERNEL_DUMP_FIELDS)                    \
	M(ky_cons_kernel_symbols, KY_CONS_KERNEL_SYMBOLS, KY_CONS_KERNEL_SYMBOLS_FIELDS)           \
	M(ky_cons_kernel_adopt, KY_CONS_KERNEL_ADOPT, KY_CONS_KERNEL_ADOPT_FIELDS)                 \
	M(ky_cons_kernel_adopt_cpu, KY_CONS_KERNEL_ADOPT_CPU, KY_CONS_KERNEL_ADOPT_CPU_FIELDS)     \
	M(ky_cons_kernel_clock, KY_CONS_KERNEL_CLOCK, KY_CONS_KERNEL_CLOCK_FIELDS)                 \
	M(ky_cons_samples_set, KY_CONS_SAMPLES_SET, KY_CONS_SAMPLES_SET_FIELDS)                    \
	M(ky_cons_samples_cpu, KY_CONS_SAMPLES_CPU, KY_CONS_SAMPLES_CPU_FIELDS)

KY_CONS_MESSAGES(KY_MSG_DECLARE)

#endif
