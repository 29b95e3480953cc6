/* SPDX-License-Identifier: MIT */
/*
 * The writing side of a ring set, inside a traced program. Called from any thread and from signal
 * handlers; no lock, no system call (but to wait, where the program allows that: ring/wait.h), no
 * allocation, errno kept. docs/shm-abi.md is the protocol.
 *
 * Who owns what:
 *   hook   one (event, ring set): the words a record needs, in one cache line. Lives in memory that
 * a forked child finds zeroed, which reads as "not active". Hooks of an event are never unlinked
 * while the event exists; a hook is switched off, and may be used again for the same event and
 * another set. set    this program's mapping of a ring set. Never freed either: a set that was
 * dropped is used again.
 *
 * A record is written inside a restartable sequence (per-CPU sets), which the listener can fence by
 * membarrier, or under `users` (per-thread sets, and all slow paths), which it can wait for. So
 * after `active` was cleared and the two were waited for, no thread touches the set's memory any
 * more.
 */
#ifndef RING_WRITER_H
#define RING_WRITER_H

#include <kymo/types.h>

#include "abi/ring.h"
#include "ring/geometry.h"

struct ky_hook;

/*
 * Writes one record. payload, len, pieces, n_pieces as kymo_record_fn has them; ts is the clock,
 * unless the writer reads it itself. Returns enum ky_write.
 */
typedef int (*ky_write_fn)(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);

enum ky_write {
	KY_WRITE_DONE = 0,    /* published; or the hook is not active */
	KY_WRITE_RESTART = 1, /* the sequence was aborted: try again */
	KY_WRITE_NO_RING = 2, /* none for this CPU; or the hook is not active any more */
	KY_WRITE_FULL = 3,    /* does not fit the block */
	KY_WRITE_LONG = 4,    /* published, with a long header */
	KY_WRITE_OFF = 5,     /* the hook is not active any more (not of the assembly) */
};

/*
 * Records one event into a hook that asks for more than its payload: contexts in front of it, a filter to pass. Ends
 * in ky_record_hook, or in nothing. The tracer's; called as ky_record is.
 */
typedef void (*ky_special_fn)(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* The order of the first members is known to the assembly: KY_HOOK_* in ring/asm-offsets.h. */
struct ky_hook {
	uint32_t active;     /* 0: record nothing; written last when switched on */
	uint32_t id;	     /* of the event in the trace */
	uint32_t n_rings;    /* 0 while not active */
	uint32_t n_short;    /* n_rings, if the short writers may use the hook; else 0 */
	uint32_t block_mask; /* block_size - 1 */
	/* greatest offset in a block for a record's payload to end at, if its header is short */
	uint32_t block_limit;
	uint32_t ring_mask; /* bytes of a ring - 1 */
	uint16_t clock;	    /* enum ky_clock */
	uint16_t mapped;    /* the tracer's: whether a set wants the event, or it may serve again */
	struct ky_ring_ctl *ctl; /* of ring 0 */
	uint8_t *data;		 /* where position 0 of ring 0 lies */
	uint64_t ring_size;
	uint32_t n_special; /* n_rings, if ky_rseq_*_special may use the hook; else 0 */
	/* second cache line: not for the short writers */
	ky_write_fn write; /* of per-CPU sets; NULL: the set is per-thread, or gone by a fork */
	struct ky_set *set;
	struct ky_hook *next; /* of the same event */
	/*
	 * NULL: records are the payload and nothing else. A thread may hold a hook that was switched off, for any
	 * time; so a hook serves again only for records of the same make: with the same `special` and `contexts`. (One
	 * without contexts may get its `special` late: who has not seen it records an event that should have passed a filter.)
	 * And soon again only with the same filters: an event that has passed others may be about to be recorded.
	 */
	ky_special_fn special;
	const void *contexts; /* the tracer's; fixed with `special` */
	const void *filters;  /* the tracer's; may change at any time: never freed */
	uint64_t retired_ns;  /* the tracer's: when it was mapped last */
	/*
	 * What records in this hook's place, if the event got another identifier or contexts while it was recorded; or NULL. It
	 * is in no event's list. Set before `special` is the function that goes there.
	 */
	struct ky_hook *heir;
} __attribute__((aligned(64)));

struct ky_set {
	uint32_t id;	/* the daemon's number; 0: free */
	uint32_t users; /* threads inside a slow path or a per-thread writer */
	uint32_t started;
	struct ky_geometry geo;
	void *base;		  /* mapping of the rings */
	const uint64_t *consumed; /* mapping of the positions, n_rings, read-only */
	size_t consumed_size;
	/* nobody may be left who makes room: who has waited in vain is the last one who waits */
	uint32_t wait_once;
	/* how long an event may wait for room; 0: not at all; UINT64_MAX: until there is some */
	uint64_t wait_ns;
	/* n_rings: not 0 when this program has written into the ring: the listener populates it */
	uint8_t *used;
	/* threads' rings only; turn: another for each set that this program ever had in this structure */
	uint32_t turn;
	uint32_t named;	     /* owners say their thread and its name: two system calls at a claim */
	uint32_t pool;	     /* so many slots are used before one that was released is used again */
	uint32_t n_prepared; /* slots, the first ones, whose memory the listener has made present */
	uint32_t n_owned;    /* slots that threads of this program have */
	uint64_t n_exhausted; /* no slot was free when there had been so many releases */
};

/* True when this thread's library and kernel do restartable sequences. Call ky_writer_init first.
 */
bool ky_writer_has_rseq(void);
/* Looks up where the C library keeps the rseq area. Once, before any record. */
void ky_writer_init(void);

/* Prepares a hook that is not active for this set and event identifier. */
void ky_hook_init(struct ky_hook *hook, struct ky_set *set, uint32_t id);

/* Records into this hook, if it is active, whatever `special` says. */
void ky_record_hook(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* The same, with the set's clock as the caller has just read it. */
void ky_record_hook_at(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
/* What of an event is recorded: fewer pieces than were handed over where some are for filters only; returns their length. */
static inline size_t ky_pieces_recorded(
	const struct kymo_piece *pieces, size_t *n_pieces, size_t len)
{
	/* Where the sum stopped, it is not that of the pieces: nothing is recorded. */
	while (len <= KY_BLOCK_MAX && *n_pieces && pieces[*n_pieces - 1].flags & KYMO_PIECE_ASIDE)
		len -= pieces[--*n_pieces].len;
	return len;
}
/* Counts the event as lost, if the hook is active; for `special`. */
void ky_record_lost(struct ky_hook *hook, enum ky_lost why);
/* Whether events go into the hook. Acquire: pairs with the release that switches it on, after its members were set. */
static inline bool ky_hook_is_active(const struct ky_hook *hook)
{
	return __atomic_load_n(&hook->active, __ATOMIC_ACQUIRE);
}
/* Records an event into this active hook: through `special` if the hook has one; without pieces that are for filters only. */
void ky_record_into(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* Records into every active hook of the list. */
void ky_record(struct ky_hook *hooks, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/*
 * Switches a hook on or off. Off: new records leave it alone at once; those under way are waited for by other means
 * (see above).
 */
void ky_hook_switch(struct ky_hook *hook, bool on);

/* The only active hook of the list; NULL if there are more, or none. */
struct ky_hook *ky_hook_sole(struct ky_hook *hooks);
/*
 * Fills in what an event calls to record itself that is right for these hooks: ky_record_event and its companions, or
 * something shorter that does the same. Into a state that nobody uses yet. hooks: NULL for none.
 */
void ky_record_choose(struct kymo_event_state *ret_state, struct ky_hook *hooks);
/* What was chosen takes the place of what the event calls: to be done whenever the list has changed. */
void ky_record_replace(struct kymo_event_state *state, const struct kymo_event_state *by);
/* A kymo_record_fn, a kymo_flat_fn and a kymo_word_fn, for whatever hooks the event has. */
void ky_record_event(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
void ky_record_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_record_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len);

/*
 * Gives back the rings that the calling thread has in this per-thread set, so that other threads
 * can go on with them; when the thread ends. The session daemon does so for processes that were killed.
 */
void ky_thread_release(struct ky_set *set);
/* The calling thread ends: from now on it gives back each ring that it claims with the record that
 * claimed it. */
void ky_thread_leave(void);
/* Called in a thread that has claimed a ring, so that the tracer can arrange for its release. May
 * be NULL. */
extern void (*ky_thread_claimed)(void);
/* Before the first record, in a forked child too: who its threads are in the slot words. May change errno. */
void ky_thread_set_process(void);
/* The process's number in slot words; 0: it has none (any more, in a forked child). */
uint32_t ky_thread_process(void);
void ky_thread_forget_process(void);

/* Writers; not called directly but by ky_record. */
int ky_rseq_record_counter(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
int ky_rseq_record_ts(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
/*
 * Of per-thread sets; inside `users`. The clock is read by the writer, after `reserve`. What finds no room is counted as
 * lost: KY_WRITE_DONE; or, when the caller will try `again` and room can come meanwhile, not: KY_WRITE_FULL.
 */
int ky_thread_record(struct ky_set *set, uint32_t id, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, bool again);

/* Short writers (x86-64 only). _known: for where the rseq area is at KY_RSEQ_KNOWN. */
void ky_rseq_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_rseq_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len);
void ky_rseq_flat_known(
	const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_rseq_word_known(const struct kymo_event *event, uint64_t value, void *hook, size_t len);
/*
 * For hooks with `special`; hook twice. The record is len bytes: `front` of those in the two vectors, at most KY_FRONT_MAX, then the
 * payload. KY_WRITE_DONE, or KY_WRITE_RESTART: do it in another way; also when the clock is beyond `until`.
 */
typedef long long ky_vector __attribute__((vector_size(16)));
#define KY_FRONT_MAX 32
typedef int (*ky_flat_special_fn)(struct ky_hook *hook, const void *payload, struct ky_hook *same,
	size_t len, uint64_t until, uint32_t front, ky_vector first, ky_vector second);
typedef int (*ky_word_special_fn)(struct ky_hook *hook, uint64_t value, struct ky_hook *same,
	size_t len, uint64_t until, uint32_t front, ky_vector first, ky_vector second);
extern __typeof__(*(ky_flat_special_fn)0) ky_rseq_flat_special, ky_rseq_flat_special_known;
extern __typeof__(*(ky_word_special_fn)0) ky_rseq_word_special, ky_rseq_word_special_known;
/* Those for where the rseq area is. */
extern ky_flat_special_fn ky_flat_special;
extern ky_word_special_fn ky_word_special;

/* Changes of this CPU's ring in one restartable sequence, made in this order if its head still is as it was. */
struct ky_stores {
	struct ky_ring_ctl *ctl; /* 0 */
	uint64_t head;		 /* 8 */
	uint64_t n;		 /* 16 */
	struct {
		uint64_t *at, value; /* 24, 32 .. */
	} store[4];
};
/* KY_WRITE_DONE, or KY_WRITE_RESTART when something else happened meanwhile. */
int ky_rseq_store(struct ky_hook *hook, const struct ky_stores *stores);

/* Offset of the rseq area from the thread pointer; for the assembly. */
extern ptrdiff_t ky_rseq_offset;

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
#define KY_HAVE_RSEQ 1
#else
#define KY_HAVE_RSEQ 0
#endif

#endif
