/* SPDX-License-Identifier: MIT */
/*
 * Layout of a ring set in shared memory (docs/shm-abi.md describes it). The session daemon makes
 * it, the tracer in applications writes it, and a consumer drains it. Applications can write all of
 * it. So every reader on the daemons' side treats every word as hostile. After it was made, the
 * session daemon writes only slot words of processes that have exited, `claimed`, `emptied` and
 * `n_used` of spreading rings, and the words of triggers.
 *
 *   memfd "rings":     set header, 1 page
 *                      n_rings x slot word         (only in sets of threads' rings)
 *                      n_rings x control block
 *                      n_rings x block table
 *                      n_rings x data
 *                      n_rings x oldest word
 *   memfd "consumed":  one uint64_t for each ring, written by the consumer, read-only for
 *                      applications
 *
 * All zeros is a valid, empty ring: a ring that was never used costs no memory.
 */
#ifndef ABI_RING_H
#define ABI_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KY_RING_MAGIC	0x474e525fu /* "_RNG" */
#define KY_RING_VERSION 5

/*
 * Positions count bytes of record space, from 0, without end (a ring never wraps in 63 bits). A
 * ring has n_blocks blocks of block_size bytes, both powers of two. Position p lies in block (p /
 * block_size) % n_blocks, at byte p % block_size + KY_BLOCK_ROOM. Applications never write the
 * first KY_BLOCK_ROOM bytes of a block, which hold a packet's header in the file. No record lies in
 * the last KY_BLOCK_SLACK bytes: a copy may exceed its end by that many.
 */
#define KY_BLOCK_ROOM	   128
#define KY_BLOCK_SLACK	   32
#define KY_BLOCK_MIN	   4096u
#define KY_BLOCK_MAX	   (1u << 30)
#define KY_RING_MIN_BLOCKS 2u
#define KY_RING_MAX_BLOCKS 4096u
#define KY_RING_MAX	   (1u << 31) /* largest size of a ring in bytes */
/*
 * A spreading ring has more blocks than writers use while the consumer keeps up, or, in overwrite
 * mode, than they use at first (n_home of them). Its positions skip the blocks that are passed
 * over, so a head may be up to this many rings ahead of the consumer. A distance has 32 bits,
 * hence the limit of the ring's size.
 */
#define KY_RING_LAPS	   4u
#define KY_RING_SPREAD_MAX (KY_RING_MAX / KY_RING_LAPS)
/* Offsets within a block at or beyond this are not record space. */
#define KY_BLOCK_LIMIT(block_size) ((block_size)-KY_BLOCK_ROOM - KY_BLOCK_SLACK)

/*
 * Header of a record: id in the low 5 bits, the low 27 bits of the clock above it; or the long
 * form.
 */
#define KY_ID_BITS	   5
#define KY_ID_EXTENDED	   31u
#define KY_TS_BITS	   27
#define KY_HEADER_COMPACT  4
#define KY_HEADER_EXTENDED 13 /* byte 31, uint32_t id, uint64_t clock */

enum ky_set_mode {
	KY_SET_PER_CPU = 0,    /* ring index = CPU number; published in restartable sequences */
	KY_SET_PER_THREAD = 1, /* ring index = slot claimed by a thread; single producer */
};

enum ky_clock {
	KY_CLOCK_MONOTONIC = 0, /* CLOCK_MONOTONIC, nanoseconds */
	KY_CLOCK_TSC = 1,	/* x86 time stamp counter */
	KY_CLOCK_CNTVCT = 2,	/* ARM generic timer, virtual count */
};

/* Why an event was discarded: index into ky_ring_ctl.lost. */
enum ky_lost {
	KY_LOST_FULL = 0,    /* no free block */
	KY_LOST_TOO_BIG = 1, /* larger than a block holds */
	/* too many attempts failed: a debugger's single steps, or a program writes into the ring */
	KY_LOST_STUCK = 2,
	KY_LOST_REFUSED = 3, /* its definition or its contexts cannot be recorded */
	KY_LOST_NO_SLOT = 4, /* other threads own all rings */
	KY_LOST_REASONS = 5,
};

/* Owner of a thread's ring, as the application describes itself. name: NUL-padded. */
struct ky_owner {
	union {
		struct {
			uint32_t pid, tid; /* in its PID namespace */
			char name[16];
		};
		uint64_t words[3]; /* the unit in which it is copied */
	};
};

/*
 * A writer that changes blocks writes two entries, before the head that enters the new block: the
 * entry of the new block gets begin_* and number, that of the block that it leaves gets used and
 * next. An entry is valid while the head is beyond it.
 */
struct ky_block_entry {
	/*
	 * not less than the clocks of records before this block, not greater than those in it; 0 at
	 * a ring's start
	 */
	uint64_t begin_ts;
	uint64_t begin_count; /* records before this block */
	uint64_t used;	      /* bytes of records in this block; valid after the head has left it */
	/*
	 * position of the block that follows; in spreading rings only, valid likewise. The block is
	 * free when the consumer is there. 0: the head has never left this block.
	 */
	uint64_t next;
	union {
		/* owner of all records in this block of a thread's ring */
		struct ky_owner owner;
		/*
		 * In spreading rings, written by the session daemon, which gives memory of free
		 * blocks back: 1 + the value of `next` for which the block is claimed, so that no
		 * writer enters it; and for which its memory was given back.
		 */
		struct {
			uint64_t claimed, emptied;
		};
	};
	uint64_t number; /* blocks that were entered before this one; in spreading rings only */
};

/*
 * Control block of one ring. `head` is the one word that publishes:
 *
 *    63                            32 31                             0
 *   +--------------------------------+--------------------------------+
 *   | records published so far       | position of the first          |
 *   | (low 32 bits)                  | unwritten byte (low 32 bits)   |
 *   +--------------------------------+--------------------------------+
 *
 * A ring has at most KY_RING_MAX bytes, so a reader that knows its own position can compute the
 * rest of both. The position passes 2^32 only when a block is entered, which sets both halves.
 * Within a block one addition moves both.
 *
 * Records with the short header hold the clock's low 27 bits. The rest is that of the last long
 * header before them, which is in the ring before `window` announces it.
 */
struct ky_ring_ctl {
	/* written with every record */
	uint64_t head;
	/*
	 * clock of a published record, low 27 bits 0; short headers extend this clock from here on
	 */
	uint64_t window;
	/*
	 * while the head stands: not less than the clock of any record before it, not greater than
	 * later ones
	 */
	uint64_t last_ts;
	/*
	 * Position of a block: everything before it may be overwritten at any moment. It is written
	 * before a block is entered that was used before. The ring's oldest word gets the same
	 * value, earlier.
	 */
	uint64_t oldest;
	/* per-thread rings only */
	uint64_t reserve; /* value of the head when all reserved records are published */
	/*
	 * spreading rings only: 1 + the consumer's position at which no block was free. A hint that
	 * saves writers a search while nothing has changed.
	 */
	uint64_t full_at;
	/*
	 * spreading rings in overwrite mode only, written by the session daemon: blocks that
	 * writers use; less than the home blocks: these. It only grows.
	 */
	union {
		uint64_t n_used;
		/*
		 * per-thread rings only: 1 while a writer changes last_ts for a head that it has
		 * not stored yet
		 */
		uint64_t moving;
	};
	/*
	 * per-thread rings only: not less than the clock of any record that is reserved after
	 * another one, and not published
	 */
	uint64_t nested_ts;
	/* written when an event is lost */
	uint64_t lost[KY_LOST_REASONS];
	/* per-thread rings only: written when a thread claims the ring */
	struct ky_owner owner;
};

/*
 * Slot word i names the owner of ring i, in a set of threads' rings.
 *
 *    63                  32 31                2        1         0
 *   +----------------------+------------------+----------+--------+
 *   | process              | thread           | claiming | 1      |   owned
 *   +----------------------+------------------+----------+--------+
 *   | number of the release that freed it, from 1        | 0      |   free; all 0: never owned
 *   +-----------------------------------------+----------+--------+
 */
#define KY_SLOT_OWNED	 ((uint64_t)1)
#define KY_SLOT_CLAIMING ((uint64_t)2) /* its positions are not yet set */

/*
 * In the set's first page, at KY_SET_SLOTS: shared by all threads that claim slots. All are hints,
 * except the number of releases.
 */
struct ky_set_slots {
	/* slots that were ever claimed: the slots from this one on are unused */
	uint64_t n_claimed;
	uint64_t n_released;
	uint64_t n_unprepared; /* claims of a slot whose memory was not populated */
};
#define KY_SET_SLOTS 2048

/*
 * In the set's first page, at KY_SET_FREEZE: triggers that applications decide (docs/shm-abi.md,
 * "Triggers"). Bit i of a mask is trigger i of the session.
 *
 *    63                  32 31                         1         0
 *   +----------------------+----------------------------+--------+
 *   | process, as in slots | trigger                    | 1      |   word: frozen; all 0: is not
 *   +----------------------+----------------------------+--------+
 */
#define KY_SET_TRIGGERS 32u
struct ky_set_freeze {
	/* while it is not 0, writers in overwrite mode enter no block */
	uint64_t word;
	uint64_t enabled;  /* may fire now; written by the session daemon */
	uint64_t armed;	   /* enabled, and has not fired: an application clears the bit to fire */
	uint64_t recorded; /* has fired, and its event is recorded */
	/* of the last one that fired: for people. who: as pid << 32 | tid; ns: of its span */
	uint64_t who, ns;
	/* spans that no trigger could measure, because too many were open */
	uint64_t n_missed;
	uint64_t n_met[KY_SET_TRIGGERS]; /* how often each condition was met */
};
#define KY_SET_FREEZE	   3072
#define KY_FROZEN	   ((uint64_t)1)
#define KY_FROZEN_BY(t, p) ((uint64_t)(p) << 32 | (uint64_t)(t) << 1 | KY_FROZEN)

/*
 * In the set's first page, at KY_SET_STOPPED: a uint64_t that is not 0 while the session does not
 * record. Written by the session daemon. Programs that have a daemon follow its messages; those
 * whose daemon was killed, and that cannot reach its successor, follow this word.
 */
#define KY_SET_STOPPED 3584

/*
 * First page of the set. Applications and consumers receive the geometry in a message; recovery
 * reads it here.
 */
struct ky_set_header {
	uint32_t magic, version;
	uint32_t size; /* of this structure */
	uint32_t mode, clock, overwrite;
	uint32_t n_rings, n_blocks, n_home, block_size;
	uint32_t number; /* of the set, in messages */
	uint32_t reserved;
	uint64_t slot_offset; /* slot word i: slot_offset + 8 * i */
	uint64_t ctl_offset;  /* control block i: ctl_offset + i * KY_CTL_SIZE */
	/* table i: table_offset + i * table_stride, n_blocks entries */
	uint64_t table_offset, table_stride;
	uint64_t data_offset, data_stride; /* data of ring i: data_offset + i * data_stride */
	uint64_t oldest_offset;		   /* oldest word i: oldest_offset + 8 * i */
	uint64_t total_size;
	uint64_t uuid_hi, uuid_lo; /* of the trace, as in messages */
};

#define KY_CTL_SIZE    128
#define KY_CTL_HEAD    0
#define KY_CTL_WINDOW  8
#define KY_CTL_LAST_TS 16
#define KY_CTL_LOST    64

static_assert(offsetof(struct ky_ring_ctl, head) == KY_CTL_HEAD, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, window) == KY_CTL_WINDOW, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, last_ts) == KY_CTL_LAST_TS, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, lost) == KY_CTL_LOST, "shm ABI");
static_assert(sizeof(struct ky_ring_ctl) == KY_CTL_SIZE, "shm ABI");
static_assert(sizeof(struct ky_owner) == 24, "shm ABI");
static_assert(sizeof(struct ky_block_entry) == 64, "shm ABI");
static_assert(sizeof(struct ky_set_header) == 128, "shm ABI");
static_assert(KY_SET_SLOTS + sizeof(struct ky_set_slots) <= KY_SET_FREEZE, "shm ABI");
static_assert(KY_SET_FREEZE + sizeof(struct ky_set_freeze) <= KY_SET_STOPPED, "shm ABI");

/* Makes a head of a position and a number of records. */
static inline uint64_t ky_head(uint64_t pos, uint64_t count)
{
	return count << 32 | (uint32_t)pos;
}

/*
 * Returns the position that a head means to a reader at position `from`, which is at or before it.
 */
static inline uint64_t ky_head_pos(uint64_t head, uint64_t from)
{
	return from + (uint32_t)((uint32_t)head - (uint32_t)from);
}

/* Returns the number of records likewise; `from` of them are known. */
static inline uint64_t ky_head_count(uint64_t head, uint64_t from)
{
	return from + (uint32_t)((uint32_t)(head >> 32) - (uint32_t)from);
}

/* Returns the window of a clock value. */
static inline uint64_t ky_window(uint64_t ts)
{
	return ts & ~(((uint64_t)1 << KY_TS_BITS) - 1);
}

#endif
