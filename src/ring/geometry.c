/* SPDX-License-Identifier: MIT */
#include "ring/geometry.h"

#define PAGE	  4096u
#define MAX_RINGS 65536u

int ky_geometry_init(struct ky_geometry *g, uint32_t mode, uint32_t clock, uint32_t n_rings,
	uint32_t n_blocks, uint32_t block_size)
{
	if (mode > KY_SET_PER_THREAD || clock > KY_CLOCK_CNTVCT || !n_rings || n_rings > MAX_RINGS)
		return -EINVAL;
	if (!ky_is_pow2(n_blocks) || n_blocks < KY_RING_MIN_BLOCKS || n_blocks > KY_RING_MAX_BLOCKS)
		return -EINVAL;
	if (!ky_is_pow2(block_size) || block_size < KY_BLOCK_MIN || block_size > KY_BLOCK_MAX)
		return -EINVAL;
	*g = (struct ky_geometry){
		.mode = mode,
		.clock = clock,
		.n_rings = n_rings,
		.n_blocks = n_blocks,
		.block_size = block_size,
		.ctl_offset = PAGE,
	};
	g->ctl_stride = ky_align_up(
		sizeof(struct ky_ring_ctl) + n_blocks * sizeof(struct ky_block_entry), 128);
	g->data_offset = ky_align_up(g->ctl_offset + n_rings * g->ctl_stride, PAGE);
	g->data_stride = (uint64_t)n_blocks * block_size;
	g->total_size = g->data_offset + n_rings * g->data_stride;
	/* Off_t and 32-bit programs: a set must be mappable at all. */
	if (g->total_size > (uint64_t)INT64_MAX / 2)
		return -EINVAL;
	return 0;
}

int ky_geometry_check(const struct ky_geometry *g)
{
	struct ky_geometry mine;

	if (ky_geometry_init(&mine, g->mode, g->clock, g->n_rings, g->n_blocks, g->block_size) < 0)
		return -EBADMSG;
	/* Field by field: a structure has padding, which a message does not carry. */
	if (mine.ctl_offset != g->ctl_offset || mine.ctl_stride != g->ctl_stride ||
		mine.data_offset != g->data_offset || mine.data_stride != g->data_stride ||
		mine.total_size != g->total_size)
		return -EBADMSG;
	return 0;
}
