/* SPDX-License-Identifier: MIT */
/*
 * Sizes and offsets of a ring set. The session daemon computes them once. Applications and
 * consumers receive them in a message and check them before use. Only recovery reads them from the
 * shared memory.
 */
#ifndef RING_GEOMETRY_H
#define RING_GEOMETRY_H

#include "abi/ring.h"
#include "base/util.h"

struct ky_geometry {
	uint32_t mode, clock; /* enum ky_set_mode, enum ky_clock */
	/* 1: a full ring overwrites its oldest block; 0: it discards new events */
	uint32_t overwrite;
	uint32_t n_rings, n_blocks;
	/*
	 * Blocks that writers use while the consumer keeps up: all, or fewer in a spreading ring.
	 * In overwrite mode: blocks that writers use at first. 0: all.
	 */
	uint32_t n_home;
	uint32_t block_size;
	uint64_t slot_offset;
	uint64_t ctl_offset;
	uint64_t table_offset, table_stride;
	uint64_t data_offset, data_stride; /* data_stride = n_blocks * block_size */
	uint64_t oldest_offset;
	uint64_t total_size;
};

/*
 * Copies the values that determine a layout, and its size as a check. The messages' fields have the
 * same names as those of the structure.
 */
#define KY_GEOMETRY_COPY(to, from)                                                                 \
	do {                                                                                       \
		(to)->mode = (from)->mode;                                                         \
		(to)->clock = (from)->clock;                                                       \
		(to)->overwrite = (from)->overwrite;                                               \
		(to)->n_rings = (from)->n_rings;                                                   \
		(to)->n_blocks = (from)->n_blocks;                                                 \
		(to)->n_home = (from)->n_home;                                                     \
		(to)->block_size = (from)->block_size;                                             \
		(to)->total_size = (from)->total_size;                                             \
	} while (0)

/*
 * Computes the layout of a set from its first members (mode .. block_size), and n_home if it is 0.
 * Returns -EINVAL unless block_size and n_blocks are powers of two within the bounds of abi/ring.h,
 * and if rings of threads spread, which they cannot.
 */
int ky_geometry_init(struct ky_geometry *g);
/*
 * Computes the layout that a peer sent. Returns -EBADMSG if it is invalid or has another size than
 * the peer states.
 */
int ky_geometry_take(struct ky_geometry *g);

/* Reads a word of a ring once: others may write it at the same time. */
static inline uint64_t ky_ring_load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Acquire: pairs with the releases by which writers and consumers publish. */
static inline uint64_t ky_ring_load_acquire(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Returns the largest payload of one record: what an empty block holds behind a long header. */
static inline uint32_t ky_geometry_max_payload(const struct ky_geometry *g)
{
	return KY_BLOCK_LIMIT(g->block_size) - KY_HEADER_EXTENDED;
}

static inline uint64_t ky_geometry_ring_mask(const struct ky_geometry *g)
{
	return (uint64_t)g->n_blocks * g->block_size - 1;
}

/* Returns true if positions may skip blocks (docs/shm-abi.md, "Spreading"). */
static inline bool ky_geometry_spreads(const struct ky_geometry *g)
{
	return g->n_home < g->n_blocks;
}

/* Returns the size in bytes of the blocks that writers use while the consumer keeps up. */
static inline uint64_t ky_geometry_home_size(const struct ky_geometry *g)
{
	return (uint64_t)g->n_home * g->block_size;
}

/* A head is less than this far ahead of the consumer, or of the oldest block that is whole. */
static inline uint64_t ky_geometry_reach(const struct ky_geometry *g)
{
	return ky_geometry_spreads(g) ? KY_RING_LAPS * g->data_stride : g->data_stride;
}

static inline struct ky_ring_ctl *ky_geometry_ctl(
	const struct ky_geometry *g, void *base, uint32_t i)
{
	return (struct ky_ring_ctl *)((char *)base + g->ctl_offset) + i;
}

static inline uint64_t *ky_geometry_slot(const struct ky_geometry *g, void *base, uint32_t i)
{
	return (uint64_t *)((char *)base + g->slot_offset) + i;
}

/* Returns the entry of the block that contains position `pos` of ring i. */
static inline struct ky_block_entry *ky_geometry_entry(
	const struct ky_geometry *g, void *base, uint32_t i, uint64_t pos)
{
	struct ky_block_entry *table = (struct ky_block_entry *)((char *)base + g->table_offset +
								 i * g->table_stride);

	return &table[(pos / g->block_size) & (g->n_blocks - 1)];
}

/*
 * Returns the second copy of the control block's `oldest`, which lies behind all data. If somebody
 * copies the memory from its beginning to its end (as cp does with a file), this copy has the value
 * that was valid after the data had been copied.
 */
static inline uint64_t *ky_geometry_oldest(const struct ky_geometry *g, void *base, uint32_t i)
{
	return (uint64_t *)((char *)base + g->oldest_offset) + i;
}

/* Returns the address of position 0 of ring i. */
static inline uint8_t *ky_geometry_data(const struct ky_geometry *g, void *base, uint32_t i)
{
	return (uint8_t *)base + g->data_offset + i * g->data_stride + KY_BLOCK_ROOM;
}

#endif
