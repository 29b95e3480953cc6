/* SPDX-License-Identifier: MIT */
/*
 * Messages between a traced program (its listener thread) and a session daemon, on RUNDIR/app.sock.
 * docs/protocol.md describes the conversation. Numbers are never reused.
 */
#ifndef PROTO_APP_H
#define PROTO_APP_H

#include "proto/wire.h"

enum ky_app_type {
	/* program -> daemon */
	KY_APP_HELLO = 1,
	KY_APP_EVENTS = 2,
	KY_APP_NEW_EVENTS = 3,
	KY_APP_ACK = 4,
	KY_APP_UNCOUNTED = 5,
	KY_APP_FLUSH = 6,
	KY_APP_LATE = 7,
	KY_APP_LEFT_OUT = 8,
	KY_APP_FIRED = 9,
	KY_APP_LEAVE = 10,
	/* daemon -> program */
	KY_APP_QUERY = 16,
	KY_APP_RING_SET = 17,
	KY_APP_MAP = 18,
	KY_APP_UNMAP = 19,
	KY_APP_START = 20,
	KY_APP_STOP = 21,
	KY_APP_DROP = 22,
	KY_APP_DONE = 23,
	KY_APP_CONTEXTS = 24,
	KY_APP_FILTERS = 25,
	KY_APP_STATEDUMP = 26,
	KY_APP_FLUSHED = 27,
	KY_APP_BLOCKING = 30,
	KY_APP_TRIGGERS = 31,
};

/* Capabilities in HELLO. */
enum ky_app_caps {
	KY_CAP_RSEQ = 1,      /* can write per-CPU rings */
	KY_CAP_TSC = 2,	      /* can read the machine's counter itself (TSC or CNTVCT) */
	KY_CAP_BLOCKING = 4,  /* may be made to wait for room */
	KY_CAP_STATEDUMP = 8, /* knows STATEDUMP */
	KY_CAP_TRIGGERS = 16, /* knows TRIGGERS */
	KY_CAP_FIXED = 32,    /* has no room for buffers that may grow */
	KY_CAP_ROOMY = 64,    /* with KY_CAP_FIXED: has room for 128 MiB of buffers */
};

/*
 * The first message of an application. pid and procname are its own statement: data, not identity.
 * n_listed: if not 0, `listed` has all of the application's events, in the form of EVENTS, at most
 * KY_LISTED_MAX: the daemon need not ask for them.
 */
#define KY_LISTED_MAX 32u
#define KY_APP_HELLO_FIELDS(F)                                                                     \
	F(u32, version)	 /* KY_PROTO_VERSION */                                                    \
	F(u32, abi_bits) /* 32 or 64 */                                                            \
	F(u32, caps)	 /* enum ky_app_caps */                                                    \
	F(u32, pid)                                                                                \
	F(u32, n_events)                                                                           \
	F(str, procname)                                                                           \
	F(u32, process) /* number in slot words, drawn by lot (abi/ring.h) */                      \
	F(later_u32, n_listed)                                                                     \
	F(later_bytes, listed)

/*
 * Answers QUERY with the application's events that match the rules. `list` is n x { u32 index,
 * bytes description (proto/desc.h) }. The index is the application's own number of the event. It
 * does not change while the application runs. more: another EVENTS with the same query follows.
 */
#define KY_APP_EVENTS_FIELDS(F)                                                                    \
	F(u32, query)                                                                              \
	F(u32, more)                                                                               \
	F(u32, n)                                                                                  \
	F(bytes, list)

/*
 * The application has loaded objects, and has n_events in all now: the daemon asks again. It may
 * arrive at any moment, also between a command and its ACK.
 */
#define KY_APP_NEW_EVENTS_FIELDS(F) F(u32, n_events)

/*
 * Answers START, STOP, DROP and STATEDUMP. After STOP and DROP, no thread records into the set any
 * more.
 */
#define KY_APP_ACK_FIELDS(F)                                                                       \
	F(u32, cookie)                                                                             \
	F(i32, status) /* 0 or -errno */

/*
 * Names a counter of the set's contexts that a thread of the application could not open. The
 * counter is 0 in that thread's records. type, config: as in struct perf_event_attr. The
 * application sends it again after each CONTEXTS, and sends known ones before an ACK.
 */
#define KY_APP_UNCOUNTED_FIELDS(F)                                                                 \
	F(u32, type)                                                                               \
	F(u64, config)                                                                             \
	F(i32, status) /* -errno */

/*
 * Sent once by each application: it exits, and waits until its events are written. The daemon
 * answers with FLUSHED. A companion (kymo-sessiond --while-used) answers when the events are
 * written, other daemons at once.
 */
#define KY_APP_FLUSH_FIELDS(F) F(u32, cookie) /* echoed */

/*
 * The application ran for this time without recording into the set, because it had stopped waiting
 * for the daemon, or had lost it. Sent before the ACK of the START that ends this time.
 */
#define KY_APP_LATE_FIELDS(F)                                                                      \
	F(u32, set)                                                                                \
	F(u64, ns)

/*
 * Names an event that the application has, but cannot record. The application sends it after HELLO
 * and before NEW_EVENTS, or at any later moment.
 */
#define KY_APP_LEFT_OUT_FIELDS(F)                                                                  \
	F(str, event) /* "provider:name", or a pattern of several */                               \
	F(str, why)

/*
 * A trigger has fired, and its event is recorded: the set's first page says which
 * (struct ky_set_freeze).
 */
#define KY_APP_FIRED_FIELDS(F) F(u32, unused)

/* The application closes this connection to register again, as another user. */
#define KY_APP_LEAVE_FIELDS(F) F(u32, unused)

/*
 * Asks for the events that match any of the rules. rules: n x { str pattern, u32 level_type
 * (enum ky_level_type), i32 level, u32 n_exclusions, n_exclusions x str }.
 */
#define KY_APP_QUERY_FIELDS(F)                                                                     \
	F(u32, query) /* the daemon's number of the ring set that it asks for; echoed */           \
	F(u32, n)                                                                                  \
	F(bytes, rules)

enum ky_level_type {
	KY_LEVEL_ALL = 0,
	KY_LEVEL_AT_LEAST = 1, /* as severe as `level` or more */
	KY_LEVEL_ONLY = 2,
};

/*
 * Passes a ring set to record into, not yet started, with two descriptors: rings (read-write),
 * consumed (read-only). lasting: if the daemon hangs up without a DROP, it was killed, and the
 * application continues to record. The daemon's successor sends the set again.
 */
#define KY_APP_RING_SET_FIELDS(F)                                                                  \
	F(u32, set)                                                                                \
	F(u32, mode)  /* enum ky_set_mode */                                                       \
	F(u32, clock) /* enum ky_clock */                                                          \
	F(u32, overwrite)                                                                          \
	F(u32, n_rings)                                                                            \
	F(u32, n_blocks)                                                                           \
	F(u32, block_size)                                                                         \
	F(u64, total_size)                                                                         \
	F(u32, lasting)                                                                            \
	F(u32, pool_size) /* slots of threads' rings to prepare */                                 \
	F(u32, named)	  /* 1: rings name their threads; the application asks the kernel */       \
	F(later_u32, n_home)                                                                       \
	F(later_u32, session) /* the same for all sets of a session; 0: not known */

/*
 * Lists the contexts that a set's events may carry before their fields. list: n x { u32 kind, str
 * argument }, in the order of the trace's description. Entry i is context i of the set, for ever.
 * The daemon sends it before the first MAP that needs it, and again with a longer list when the
 * channel gets more contexts.
 */
#define KY_APP_CONTEXTS_FIELDS(F)                                                                  \
	F(u32, set)                                                                                \
	F(u32, n)                                                                                  \
	F(bytes, list)

/*
 * Sends filters that MAP refers to. list: n x { u32 number, bytes program }. A number stands for
 * the same program as long as the set lives. The daemon sends it before the first MAP that needs
 * them.
 */
#define KY_APP_FILTERS_FIELDS(F)                                                                   \
	F(u32, set)                                                                                \
	F(u32, n)                                                                                  \
	F(bytes, list)

/*
 * Attaches events to the set. list: n x { u32 event index, u32 identifier in the trace, u32
 * n_contexts, u32 n_filters, n_filters x u32 filter number }. Each record of the event begins with
 * the first n_contexts contexts of the set. The application records an event with filters if any of
 * them passes, and always records an event without filters.
 *
 * MAP of an event that is already mapped replaces its filters. If its identifier and contexts
 * differ, MAP replaces these too, and each record is made in one of the two ways. If the identifier
 * is KY_MAP_REFUSED, the event is not recorded, but counted as discarded.
 */
#define KY_MAP_REFUSED (UINT32_MAX - 1)
#define KY_APP_MAP_FIELDS(F)                                                                       \
	F(u32, set)                                                                                \
	F(u32, n)                                                                                  \
	F(bytes, list)

/*
 * Sets how long an event may wait for room in the set, if the application allows it. The daemon
 * sends it after RING_SET, unless events do not wait at all, and again whenever the time changes.
 */
#define KY_APP_BLOCKING_FIELDS(F)                                                                  \
	F(u32, set)                                                                                \
	F(u64, timeout_us) /* 0: not at all; UINT64_MAX: until there is room */

/*
 * Sets the triggers that an event of the set may fire. The daemon sends it after each MAP of such
 * an event, which has removed its triggers. list: n x { u32 trigger, u32 flags, u32 filter, u64 ns
 * }. filter: a number of FILTERS + 1; 0: none. The event meets the condition of a trigger if it
 * passes this filter, and, with KY_TRIGGER_TIMED, if the span that it ends lasted longer than ns.
 */
#define KY_TRIGGER_FREEZES 1u /* flag: writers overwrite nothing more when it fires */
#define KY_TRIGGER_TIMED   2u
/* The part of an event in a span that is measured. */
enum ky_span_role {
	KY_SPAN_NONE = 0,
	KY_SPAN_BEGIN = 1,
	KY_SPAN_END = 2,
};
#define KY_APP_TRIGGERS_FIELDS(F)                                                                  \
	F(u32, set)                                                                                \
	F(u32, event)	/* its index */                                                            \
	F(u32, role)	/* enum ky_span_role */                                                    \
	F(u32, id_size) /* of the span's number, the event's first field: 4 or 8 bytes */          \
	F(u64, span)	/* stands for the span's name */                                           \
	F(u32, n)                                                                                  \
	F(bytes, list)

/* Detaches events. list: n x u32 event index. */
#define KY_APP_UNMAP_FIELDS(F)                                                                     \
	F(u32, set)                                                                                \
	F(u32, n)                                                                                  \
	F(bytes, list)

/* START: recording into the set may begin. STOP: it ends. DROP: forget the set and its mappings. */
#define KY_APP_SET_FIELDS(F)                                                                       \
	F(u32, cookie)                                                                             \
	F(u32, set)

/*
 * Asks for the application's state to be recorded into these sets, which have started, and into no
 * others. sets: n x u32. The ACK says that the state has been recorded.
 */
#define KY_APP_STATEDUMP_FIELDS(F)                                                                 \
	F(u32, cookie)                                                                             \
	F(u32, n)                                                                                  \
	F(bytes, sets)

/* All that sessions wanted of this application so far has been sent: it may continue to main(). */
#define KY_APP_DONE_FIELDS(F) F(u32, n_sets)

/*
 * The table of all messages. Each row makes a struct, an encoder and a decoder, and a sender for
 * messages from daemons (svc/msg-conn.h).
 */
#define KY_APP_MESSAGES(M)                                                                         \
	M(ky_app_hello, KY_APP_HELLO, KY_APP_HELLO_FIELDS)                                         \
	M(ky_app_events, KY_APP_EVENTS, KY_APP_EVENTS_FIELDS)                                      \
	M(ky_app_new_events, KY_APP_NEW_EVENTS, KY_APP_NEW_EVENTS_FIELDS)                          \
	M(ky_app_ack, KY_APP_ACK, KY_APP_ACK_FIELDS)                                               \
	M(ky_app_uncounted, KY_APP_UNCOUNTED, KY_APP_UNCOUNTED_FIELDS)                             \
	M(ky_app_flush, KY_APP_FLUSH, KY_APP_FLUSH_FIELDS)                                         \
	M(ky_app_late, KY_APP_LATE, KY_APP_LATE_FIELDS)                                            \
	M(ky_app_left_out, KY_APP_LEFT_OUT, KY_APP_LEFT_OUT_FIELDS)                                \
	M(ky_app_fired, KY_APP_FIRED, KY_APP_FIRED_FIELDS)                                         \
	M(ky_app_leave, KY_APP_LEAVE, KY_APP_LEAVE_FIELDS)                                         \
	M(ky_app_query, KY_APP_QUERY, KY_APP_QUERY_FIELDS)                                         \
	M(ky_app_ring_set, KY_APP_RING_SET, KY_APP_RING_SET_FIELDS)                                \
	M(ky_app_contexts, KY_APP_CONTEXTS, KY_APP_CONTEXTS_FIELDS)                                \
	M(ky_app_filters, KY_APP_FILTERS, KY_APP_FILTERS_FIELDS)                                   \
	M(ky_app_map, KY_APP_MAP, KY_APP_MAP_FIELDS)                                               \
	M(ky_app_unmap, KY_APP_UNMAP, KY_APP_UNMAP_FIELDS)                                         \
	M(ky_app_start, KY_APP_START, KY_APP_SET_FIELDS)                                           \
	M(ky_app_stop, KY_APP_STOP, KY_APP_SET_FIELDS)                                             \
	M(ky_app_drop, KY_APP_DROP, KY_APP_SET_FIELDS)                                             \
	M(ky_app_statedump, KY_APP_STATEDUMP, KY_APP_STATEDUMP_FIELDS)                             \
	M(ky_app_done, KY_APP_DONE, KY_APP_DONE_FIELDS)                                            \
	M(ky_app_flushed, KY_APP_FLUSHED, KY_APP_FLUSH_FIELDS)                                     \
	M(ky_app_blocking, KY_APP_BLOCKING, KY_APP_BLOCKING_FIELDS)                                \
	M(ky_app_triggers, KY_APP_TRIGGERS, KY_APP_TRIGGERS_FIELDS)

KY_APP_MESSAGES(KY_MSG_DECLARE)

#endif
