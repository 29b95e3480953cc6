/* SPDX-License-Identifier: MIT */
/*
 * Memory that a consumer of kernel events leaves for its successor. Reading the kernel's ring
 * destroys what was read, so the consumer reads into this memory, and makes the records of the
 * trace in it. The session daemon makes the memfd, and only consumers read and write it. All zeros
 * is the state of a ring that was never read.
 *
 *   memfd:     n_cpus x struct ky_kernel_cpu, each with
 *              its blocks of records, KY_KERNEL_BLOCKS x KY_KERNEL_BLOCK
 *              one sub-buffer as it was read, and KY_KERNEL_BEHIND bytes: the slack, and records
 *              of the sub-buffer before it that wait for their stacks
 *
 * Positions count bytes of records, as in a ring (abi/ring.h): position p lies in block
 * (p / KY_KERNEL_BLOCK) % KY_KERNEL_BLOCKS.
 *
 * `word` publishes by one store: bit 0 says that a sub-buffer is being read, and bit 1 names the
 * slot in use. A consumer writes the other slot first. So a successor finds the state before or
 * after a step, and never between: it reads the rest of a sub-buffer whose read was cut short, and
 * transcodes again what was not published.
 */
#ifndef ABI_KERNEL_H
#define ABI_KERNEL_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/resume.h"

#define KY_KERNEL_BLOCKS     4u
#define KY_KERNEL_BLOCK	     (256u << 10)
#define KY_KERNEL_SLACK	     64u /* copies may exceed a sub-buffer's end by that many bytes */
#define KY_KERNEL_BEHIND     4096u
#define KY_KERNEL_SUBBUF_MIN 4096u
#define KY_KERNEL_SUBBUF_MAX (256u << 10)
#define KY_KERNEL_CPUS_MAX   4096u

#define KY_KERNEL_READING 1u
#define KY_KERNEL_SLOT	  2u

/* The published state of a CPU. */
struct ky_kernel_slot {
	uint64_t pos, count, ts; /* end of the records: position, number, clock of the last */
	uint64_t first_ts;	 /* clock of the first record; 0: none yet */
	/*
	 * Of the sub-buffer: bytes that were transcoded, 0 for all; the clock there. The upper 32
	 * bits of page_at: where records wait, which come first; then page_ts is their clock.
	 */
	uint64_t page_at, page_ts;
	uint64_t n_refused; /* records that could not be decoded */
	/* the next part of a state dump is written if its number << 32 | part is greater */
	uint64_t dump;
	uint64_t n_lost; /* samples that were lost, as records of the kernel say */
};

/* A block that is complete. */
struct ky_kernel_block {
	uint64_t len;	    /* bytes of records */
	uint64_t count, ts; /* at its end */
};

struct ky_kernel_cpu {
	uint64_t word;
	uint64_t reserved;
	struct ky_kernel_slot slots[2];
	struct ky_kernel_block blocks[KY_KERNEL_BLOCKS];
	struct ky_resume_stream resume;
};

/* A thread of the table that gives threads their process and name. */
struct ky_kernel_thread {
	int32_t tid, pid;
	char name[16];
};

/* A record of the state dump; its contexts, which are zeros, and its fields follow. */
struct ky_kernel_dump_record {
	uint32_t id, len;
};

static_assert(sizeof(struct ky_kernel_slot) == 72, "between consumers");
static_assert(sizeof(struct ky_kernel_thread) == 24, "in messages");

static inline uint64_t ky_kernel_round(uint64_t n)
{
	return (n + 4095) & ~(uint64_t)4095;
}

/* Returns the offset of a CPU's blocks in its part; the sub-buffer is behind them. */
static inline uint64_t ky_kernel_blocks_offset(void)
{
	return ky_kernel_round(sizeof(struct ky_kernel_cpu));
}

static inline uint64_t ky_kernel_page_offset(void)
{
	return ky_kernel_blocks_offset() + KY_KERNEL_BLOCKS * KY_KERNEL_BLOCK;
}

/* Returns the size of a CPU's part. */
static inline uint64_t ky_kernel_cpu_size(uint32_t subbuf_size)
{
	return ky_kernel_page_offset() + ky_kernel_round(subbuf_size + KY_KERNEL_BEHIND);
}

/* Returns the size of the memfd in bytes. */
static inline uint64_t ky_kernel_memory_size(uint32_t n_cpus, uint32_t subbuf_size)
{
	return n_cpus * ky_kernel_cpu_size(subbuf_size);
}

#endif
