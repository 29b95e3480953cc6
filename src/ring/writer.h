/* SPDX-License-Identifier: MIT */
/*
 * The writing side of a ring set, inside an application. Any thread and any signal handler may call
 * it. It takes no lock, allocates nothing, and preserves errno. It makes no system call, except to
 * wait where the application allows that (ring/wait.h). docs/shm-abi.md is the protocol.
 *
 *   object   represents                      lifetime
 *   ------   ----------                      --------
 *   hook     one pair (event, ring set):     It lies in memory that a forked child finds zeroed,
 *            the words that a record         which means "not active". While the event exists, its
 *            needs, in one cache line        hooks are never unlinked. A hook is switched off, and
 *                                            may be used again for the same event and another set.
 *   set      this application's mapping      It is never freed. A set that was dropped is used
 *            of a ring set                   again.
 *
 * A record is written either inside a restartable sequence (per-CPU sets) or under `users`
 * (per-thread sets, and all slow paths). The listener can fence the first by membarrier, and can
 * wait for the second. So after the listener has cleared `active` and done both, no thread accesses
 * the set's memory any more.
 */
#ifndef RING_WRITER_H
#define RING_WRITER_H

#include <kymo/types.h>

#include "abi/ring.h"
#include "ring/geometry.h"
#include "ring/parts.h"

struct ky_hook;

/*
 * Writes one record. payload, len, pieces and n_pieces are those of kymo_record_fn. ts is the
 * clock, unless the writer reads it itself. Returns enum ky_write.
 */
typedef int (*ky_write_fn)(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);

enum ky_write {
	KY_WRITE_DONE = 0,    /* published; or the hook is not active */
	KY_WRITE_RESTART = 1, /* the sequence was aborted: try again */
	KY_WRITE_NO_RING = 2, /* no ring for this CPU; or the hook is no longer active */
	KY_WRITE_FULL = 3,    /* the record does not fit the block */
	KY_WRITE_LONG = 4,    /* published, with a long header */
	KY_WRITE_OFF = 5,     /* the hook is no longer active (the assembly does not return it) */
};

/*
 * Records one event into a hook that needs more than its payload: contexts in front of it, or a
 * filter. It ends in ky_record_hook, or records nothing. The tracer provides it. It is called as
 * ky_record is.
 */
typedef void (*ky_special_fn)(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/* The assembly knows the order of the first members: KY_HOOK_* in ring/asm-offsets.h. */
struct ky_hook {
	uint32_t active;     /* 0: record nothing; written last when the hook is switched on */
	uint32_t id;	     /* identifier of the event in the trace */
	uint32_t n_rings;    /* 0 while not active */
	uint32_t n_short;    /* n_rings if the short writers may use the hook, else 0 */
	uint32_t block_mask; /* block_size - 1 */
	/* greatest offset in a block at which a record's payload may end, if its header is short */
	uint32_t block_limit;
	uint32_t ring_mask; /* size of a ring in bytes - 1 */
	uint16_t clock;	    /* enum ky_clock */
	/*
	 * for the tracer: free, mapped for a set that wants the event, or retired (HOOK_* in
	 * tracer/set-hooks.c)
	 */
	uint16_t mapped;
	struct ky_ring_ctl *ctl; /* control block of ring 0 */
	uint8_t *data;		 /* address of position 0 of ring 0 */
	uint64_t ring_size;
	uint32_t n_special; /* n_rings if ky_rseq_*_special may use the hook, else 0 */
	/*
	 * Second cache line, which the short writers do not use. write: for per-CPU sets; NULL: the
	 * set is per-thread, or a fork has zeroed the hook.
	 */
	ky_write_fn write;
	struct ky_set *set;
	struct ky_hook *next; /* next hook of the same event */
	/*
	 * NULL: a record consists of the payload alone.
	 *
	 * A thread may still hold a hook that was switched off, for any time. So a hook is used
	 * again only for records of the same form: with the same `special` and `contexts`. (A hook
	 * without contexts may get its `special` later. A thread that has not seen it records an
	 * event that should have passed a filter.) A hook is used again soon only with the same
	 * filters, because a thread may be about to record an event that has passed the old ones.
	 */
	ky_special_fn special;
	const void *contexts; /* for the tracer; never changes after `special` is set */
	const void *filters;  /* for the tracer; may change at any time, so it is never freed */
	uint64_t retired_ns;  /* for the tracer: when it was mapped last */
	/*
	 * The hook that records in place of this one, if the event got another identifier or
	 * contexts while it was recorded; else NULL. It is in no event's list: its `next` is a heir
	 * that was used earlier. It is set before `special` becomes the function that records into
	 * it.
	 */
	struct ky_hook *heir;
} __attribute__((aligned(64)));

struct ky_set {
	uint32_t id;	/* the daemon's number; 0: free */
	uint32_t users; /* threads inside a slow path or a per-thread writer */
	uint32_t started;
	struct ky_geometry geo;
	/* mapping: of all rings, or of threads' rings up to the slot words */
	void *base;
	const uint64_t *consumed; /* mapping of the positions, n_rings, read-only */
	size_t consumed_size;
	/* the process that makes room may have exited: after one vain wait nobody waits any more */
	uint32_t wait_once;
	/* blocks at a spreading ring's end that this application does not enter; may change */
	uint32_t n_shunned;
	/* longest wait of an event for room; 0: none; UINT64_MAX: without limit */
	uint64_t wait_ns;
	/*
	 * n_rings elements; not 0: this application has written into the ring: the listener
	 * populates it
	 */
	uint8_t *used;
	/*
	 * The other members are for threads' rings only. parts: the rings' memory. turn: differs
	 * for each set that this application ever had in this structure.
	 */
	struct ky_ring_parts parts;
	uint32_t turn;
	/* owners state their thread and its name: two system calls at a claim */
	uint32_t named;
	/* number of slots that are used before one that was released is used again */
	uint32_t pool;
	/* number of slots, from the first, whose memory the listener populated */
	uint32_t n_prepared;
	uint32_t n_owned;     /* number of slots that threads of this application own */
	uint64_t n_exhausted; /* number of releases when no slot was free */
};

/*
 * Returns true if this thread's C library and kernel support restartable sequences. ky_writer_init
 * must have been called before.
 */
bool ky_writer_has_rseq(void);
/* Finds out where the C library keeps the rseq area. Called once, before any record. */
void ky_writer_init(void);

/* Prepares a hook that is not active for this set and event identifier. */
void ky_hook_init(struct ky_hook *hook, struct ky_set *set, uint32_t id);

/* Records into this hook, if it is active. Ignores `special`. */
void ky_record_hook(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* Like ky_record_hook, with the set's clock as the caller has just read it. */
void ky_record_hook_at(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
/* Drops the pieces that are for filters only. Returns the length of those that are recorded. */
static inline size_t ky_pieces_recorded(
	const struct kymo_piece *pieces, size_t *n_pieces, size_t len)
{
	/* If the sum was limited, it is not that of the pieces: nothing is recorded. */
	while (len <= KY_BLOCK_MAX && *n_pieces && pieces[*n_pieces - 1].flags & KYMO_PIECE_ASIDE)
		len -= pieces[--*n_pieces].len;
	return len;
}
/* Counts the event as lost, if the hook is active. For `special`. */
void ky_record_lost(struct ky_hook *hook, enum ky_lost why);
/*
 * Returns true if events go into the hook. Acquire: pairs with the release that switches it on
 * after its members were set.
 */
static inline bool ky_hook_is_active(const struct ky_hook *hook)
{
	return __atomic_load_n(&hook->active, __ATOMIC_ACQUIRE);
}
/*
 * Records an event into this active hook, through `special` if the hook has one, without the pieces
 * that are for filters only.
 */
void ky_record_into(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
/* Records into every active hook of the list. */
void ky_record(struct ky_hook *hooks, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);

/*
 * Switches a hook on or off. After "off", new records ignore it at once. The caller waits for
 * records in flight by other means (see the top of this file).
 */
void ky_hook_switch(struct ky_hook *hook, bool on);

/*
 * Chooses the functions that an event calls to record itself into these hooks: ky_record_event and
 * its companions, or something shorter that does the same. Writes them to a state that nobody uses
 * yet. hooks: NULL for none.
 */
void ky_record_choose(struct kymo_event_state *ret_state, struct ky_hook *hooks);
/*
 * Replaces what the event calls with what was chosen. The caller must do so whenever the list has
 * changed.
 */
void ky_record_replace(struct kymo_event_state *state, const struct kymo_event_state *by);
/* A kymo_record_fn, a kymo_flat_fn and a kymo_word_fn, for any hooks that the event has. */
void ky_record_event(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces);
void ky_record_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_record_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len);

/*
 * Releases the rings that the calling thread owns in this per-thread set, when the thread ends, so
 * that other threads can use them. For processes that were killed, the session daemon does it.
 */
void ky_thread_release(struct ky_set *set);
/*
 * Notes that the calling thread ends: from now on it releases each ring with the record that
 * claimed it.
 */
void ky_thread_leave(void);
/*
 * Called in a thread that has claimed a ring, so that the tracer can arrange for its release. May
 * be NULL.
 */
extern void (*ky_thread_claimed)(void);
/*
 * Sets the process that owns this process's threads in the slot words. Called before the first
 * record, in a forked child too. May change errno.
 */
void ky_thread_set_process(void);
/*
 * Returns the process's number in slot words, or 0 if it has none. A forked child has none at
 * first.
 */
uint32_t ky_thread_process(void);
void ky_thread_forget_process(void);

/* The writers. Only ky_record calls them directly. */
int ky_rseq_record_counter(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
int ky_rseq_record_ts(struct ky_hook *hook, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, uint64_t ts);
/*
 * Writes a record into a per-thread set, inside `users`. Reads the clock itself, after `reserve`.
 * If there is no room, counts the record as lost and returns KY_WRITE_DONE. If the caller will try
 * `again` and room can appear meanwhile, it does not count the record and returns KY_WRITE_FULL.
 */
int ky_thread_record(struct ky_set *set, uint32_t id, const void *payload, uint32_t len,
	const struct kymo_piece *pieces, size_t n_pieces, bool again);

/* The short writers (x86-64 only). _known: for an rseq area at KY_RSEQ_KNOWN. */
void ky_rseq_flat(const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_rseq_word(const struct kymo_event *event, uint64_t value, void *hook, size_t len);
void ky_rseq_flat_known(
	const struct kymo_event *event, const void *payload, void *hook, size_t len);
void ky_rseq_word_known(const struct kymo_event *event, uint64_t value, void *hook, size_t len);
/*
 * For hooks with `special`; the hook is passed twice. The record is len bytes: `front` bytes of the
 * two vectors, at most KY_FRONT_MAX, then the payload. Returns KY_WRITE_DONE, or KY_WRITE_RESTART
 * if the caller has to record in another way, which includes a clock beyond `until`.
 */
typedef long long ky_vector __attribute__((vector_size(16)));
#define KY_FRONT_MAX 32
typedef int (*ky_flat_special_fn)(struct ky_hook *hook, const void *payload, struct ky_hook *same,
	size_t len, uint64_t until, uint32_t front, ky_vector first, ky_vector second);
typedef int (*ky_word_special_fn)(struct ky_hook *hook, uint64_t value, struct ky_hook *same,
	size_t len, uint64_t until, uint32_t front, ky_vector first, ky_vector second);
extern __typeof__(*(ky_flat_special_fn)0) ky_rseq_flat_special, ky_rseq_flat_special_known;
extern __typeof__(*(ky_word_special_fn)0) ky_rseq_word_special, ky_rseq_word_special_known;
/* The functions that suit the place of the rseq area. */
extern ky_flat_special_fn ky_flat_special;
extern ky_word_special_fn ky_word_special;

/*
 * Changes of this CPU's ring in one restartable sequence, made in this order if its head and one
 * more word are unchanged.
 */
struct ky_stores {
	struct ky_ring_ctl *ctl; /* 0 */
	uint64_t head;		 /* 8 */
	const uint64_t *other;	 /* 16 */
	uint64_t other_value;	 /* 24 */
	uint64_t n;		 /* 32 */
	struct {
		uint64_t *at, value; /* 40, 48 .. */
	} store[6];
};
/*
 * Makes the changes. Returns KY_WRITE_DONE, or KY_WRITE_RESTART if something else happened
 * meanwhile: then some of the first stores may have been made, but not the last.
 */
int ky_rseq_store(struct ky_hook *hook, const struct ky_stores *stores);

/* Offset of the rseq area from the thread pointer; for the assembly. */
extern ptrdiff_t ky_rseq_offset;

#if (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
#define KY_HAVE_RSEQ 1
#else
#define KY_HAVE_RSEQ 0
#endif

#endif
