/* SPDX-License-Identifier: MIT */
/*
 * Layout of a ring set in shared memory (docs/shm-abi.md is the prose). Written by the tracer in
 * traced programs, made by the session daemon, drained by a consumer. Traced programs can write all
 * of it, so every reader on the daemons' side treats every word as hostile; and nobody but a traced
 * program ever writes it after it was made.
 *
 *   memfd "rings":   | set header, 1 page | n_rings x control block | n_rings x data |
 *   memfd "consumed": one uint64_t for each ring, written by the consumer, read-only for programs
 *
 * All zeros is a valid, empty ring: a ring that was never used costs no memory.
 */
#ifndef ABI_RING_H
#define ABI_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define KY_RING_MAGIC	0x474e525fu /* "_RNG" */
#define KY_RING_VERSION 1

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
	KY_LOST_REASONS = 4,
};

/* State that is published together with the head: of the last record before it. */
struct ky_ring_slot {
	uint64_t ts;	/* full clock value */
	uint64_t count; /* records published so far */
};

/*
 * Written on entering block b by the store sequence of a block switch, before the head that enters it:
 * entry b gets begin_*, entry b-1 gets used. An entry is valid while the head is beyond it.
 */
struct ky_block_entry {
	uint64_t begin_ts;    /* clock of the last record before this block; 0 at a ring's start */
	uint64_t begin_count; /* records before this block */
	uint64_t used;	      /* bytes of records in this block; valid once the head has left it */
	uint64_t reserved;
};

/*
 * Control block of one ring. `head` is the one word that publishes:
 *
 *    63                                   1   0
 *   +--------------------------------------+------+
 *   | position of the first unwritten byte | slot |
 *   +--------------------------------------+------+
 *
 * slot[head & 1] belongs to that head; a writer fills the other one and flips the bit.
 */
struct ky_ring_ctl {
	/* written with every record */
	uint64_t head;
	struct ky_ring_slot slot[2];
	/* per-thread rings only */
	uint64_t reserve; /* position up to which records are reserved; >= head's position */
	uint64_t last_ts; /* greatest clock value reserved */
	uint64_t owner; /* 0: free; else process << 32 | claiming << 31 | thread, docs/shm-abi.md */
	/* written when an event is lost */
	uint64_t lost[KY_LOST_REASONS];
	uint64_t reserved_count; /* per-thread rings only: records reserved */
	uint64_t reserved[3];
	struct ky_block_entry blocks[]; /* n_blocks */
};

/* First page of the set. Programs and consumers get the geometry in a message; this is for recovery. */
struct ky_set_header {
	uint32_t magic, version;
	uint32_t size; /* of this structure */
	uint32_t mode, clock;
	uint32_t n_rings, n_blocks, block_size;
	uint64_t ctl_offset, ctl_stride;   /* control block i: ctl_offset + i * ctl_stride */
	uint64_t data_offset, data_stride; /* data of ring i: data_offset + i * data_stride */
	uint64_t total_size;
};

#define KY_CTL_HEAD   0
#define KY_CTL_SLOT   8
#define KY_CTL_BLOCKS 128
#define KY_CTL_LOST   64

static_assert(offsetof(struct ky_ring_ctl, head) == KY_CTL_HEAD, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, slot) == KY_CTL_SLOT, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, lost) == KY_CTL_LOST, "shm ABI");
static_assert(offsetof(struct ky_ring_ctl, blocks) == KY_CTL_BLOCKS, "shm ABI");
static_assert(sizeof(struct ky_ring_slot) == 16, "shm ABI");
static_assert(sizeof(struct ky_block_entry) == 32, "shm ABI");
static_assert(sizeof(struct ky_set_header) == 72, "shm ABI");

static inline uint64_t ky_head_pos(uint64_t head)
{
	return head >> 1;
}

#endif
