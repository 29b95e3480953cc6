/* SPDX-License-Identifier: MIT */
/*
 * Layout of a ring set in shared memory (docs/shm-abi.md is the prose). Written by the tracer in
 * traced programs, made by the session daemon, drained by a consumer. Traced programs can write all
 * of it, so every reader on the daemons' side treats every word as hostile; and nobody but a traced
 * program ever writes it after it was made.
 *
 *   memfd "rings":   | set header, 1 page | n_rings x slot word | n_rings x control block | n_rings x block table | n_rings x data | n_rings x oldest word |
 *   memfd "consumed": one uint64_t for each ring, written by the consumer, read-only for programs
 *
 * Only sets of threads' rings have slot words. All zeros is a valid, empty ring: one that was never used costs no memory.
 */
#ifndef ABI_RING_H
#define ABI_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KY_RING_MAGIC	0x474e525fu /* "_RNG" */
#define KY_RING_VERSION 4

/*
 * Positions count bytes of record space, from 0, for ever (a ring never wraps in 63 bits). A ring is
 * n_blocks blocks of block_size bytes, both powers of two. Position p lies in block
 * (p / block_size) % n_blocks, at byte p % block_size + KY_BLOCK_ROOM: the first KY_BLOCK_ROOM bytes
 * of each block are never written by a program, and are where a packet's header stands in the file.
 * No record lies in the last KY_BLOCK_SLACK bytes: a copy may overrun its end by that.
 */
#define KY_BLOCK_ROOM	   128
#define KY_BLOCK_SLACK	   32
#define KY_BLOCK_MIN	   4096u
#define KY_BLOCK_MAX	   (1u << 30)
#define KY_RING_MIN_BLOCKS 2u
#define KY_RING_MAX_BLOCKS 4096u
#define KY_RING_MAX	   (1u << 31) /* bytes of a ring */
/* Offsets within a block at or beyond this are not record space. */
#define KY_BLOCK_LIMIT(block_size) ((block_size)-KY_BLOCK_ROOM - KY_BLOCK_SLACK)

/* Header of a record: id in the low 5 bits, the low 27 bits of the clock above; or the long form. */
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
	KY_LOST_STUCK = 2,   /* the sequence was aborted too often (a debugger's single steps) */
	KY_LOST_REFUSED = 3, /* another definition of the event's name came first */
	KY_LOST_NO_SLOT = 4, /* all rings are other threads' */
	KY_LOST_REASONS = 5,
};

/* Who records into a ring of a thread: what the program says of itself. name: NUL-padded. */
struct ky_owner {
	union {
		struct {
			uint32_t pid, tid; /* in its PID namespace */
			char name[16];
		};
		uint64_t words[3]; /* as it is copied */
	};
};

/*
 * Entry b of a ring's block table is written on entering block b, before the head that enters it: entry b gets begin_*,
 * entry b-1 gets used. An entry is valid while the head is beyond it.
 */
struct ky_block_entry {
	/* no earlier than any record before this block, no later than any in it; 0 at a ring's start */
	uint64_t begin_ts;
	uint64_t begin_count; /* records before this block */
	uint64_t used;	      /* bytes of records in this block; valid once the head has left it */
	uint64_t reserved;
	struct ky_owner owner; /* of all records in this block; of a thread's ring */
	uint64_t reserved2;
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
 * A ring is at most KY_RING_MAX bytes, so who knows where he is himself knows the rest of both. The position passes
 * 2^32 on entering a block only, which sets both halves; within a block one addition moves both.
 *
 * Records with the short header hold the clock's low 27 bits: the rest is that of the last long header before them,
 * which is in the ring before `window` says so.
 */
struct ky_ring_ctl {
	/* written with every record */
	uint64_t head;
	/* clock of a published record, its low 27 bits 0: the short header tells clocks from here on */
	uint64_t window;
	/* while the head stands: no earlier than any record before it, no later than any behind */
	uint64_t last_ts;
	/* written before a block is entered that was in use before */
	/* position of a block: what is before it may be overwritten at any moment. The ring's oldest word is the same, later */
	uint64_t oldest;
	/* per-thread rings only */
	uint64_t reserve; /* what the head will be when all that have a place are published */
	uint64_t reserved[3];
	/* written when an event is lost */
	uint64_t lost[KY_LOST_REASONS];
	/* per-thread rings only: written when a thread claims the ring */
	struct ky_owner owner;
};

/*
 * Slot word i says whose ring i is, in a set of threads' rings.
 *
 *    63                  32 31                2        1         0
 *   +----------------------+------------------+----------+--------+
 *   | process              | thread           | claiming | 1      |   owned
 *   +----------------------+------------------+----------+--------+
 *   | number of the release that freed it, from 1        | 0      |   free; all 0: never owned
 *   +-----------------------------------------+----------+--------+
 */
#define KY_SLOT_OWNED	 ((uint64_t)1)
#define KY_SLOT_CLAIMING ((uint64_t)2) /* its positions are not in order yet */

/* In the set's first page, at KY_SET_SLOTS: what all who claim slots share. Hints, but for the numbers of releases. */
struct ky_set_slots {
	uint64_t n_claimed; /* slots that were ever claimed: those from here on are unused */
	uint64_t n_released;
	uint64_t n_unprepared; /* claims of a slot whose memory nobody had made present */
};
#define KY_SET_SLOTS 2048

/* First page of the set. Programs and consumers get the geometry in a message; this is for recovery. */
struct ky_set_header {
	uint32_t magic, version;
	uint32_t size; /* of this structure */
	uint32_t mode, clock, overwrite;
	uint32_t n_rings, n_blocks, block_size;
	uint32_t number;      /* of the set, in messages */
	uint64_t slot_offset; /* slot word i: slot_offset + 8 * i */
	uint64_t ctl_offset;  /* control block i: ctl_offset + i * KY_CTL_SIZE */
	/* table i: table_offset + i * table_stride, n_blocks entries */
	uint64_t table_offset, table_stride;
	uint64_t data_offset, data_stride; /* data of ring i: data_offset + i * data_stride */
	uint64_t oldest_offset;		   /* oldest word i: oldest_offset + 8 * i */
	uint64_t total_size;
	uint64_t uuid_hi, uuid_lo; /* of the trace, as in messages */
	uint64_t reserved;
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

/* The head of a position and a number of records, and back. */
static inline uint64_t ky_head(uint64_t pos, uint64_t count)
{
	return count << 32 | (uint32_t)pos;
}

/* The position that a head means, for somebody who is at `from`, at or before it. */
static inline uint64_t ky_head_pos(uint64_t head, uint64_t from)
{
	return from + (uint32_t)((uint32_t)head - (uint32_t)from);
}

/* Likewise the number of records, of which `from` are known. */
static inline uint64_t ky_head_count(uint64_t head, uint64_t from)
{
	return from + (uint32_t)((uint32_t)(head >> 32) - (uint32_t)from);
}

/* The window that a clock value lies in. */
static inline uint64_t ky_window(uint64_t ts)
{
	return ts & ~(((uint64_t)1 << KY_TS_BITS) - 1);
}

#endif
