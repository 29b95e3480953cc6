/* SPDX-License-Identifier: MIT */
#include "ring/geometry.h"

#define PAGE	  4096u
#define MAX_RINGS 65536u

int ky_geometry_init(struct ky_geometry *g)
{
	uint64_t ring_size = (uint64_t)g->n_blocks * g->block_size;

	if (g->mode > KY_SET_PER_THREAD || g->clock > KY_CLOCK_CNTVCT || g->overwrite > 1 ||
		!g->n_rings || g->n_rings > MAX_RINGS)
		return -EINVAL;
	if (!ky_is_pow2(g->n_blocks) || g->n_blocks < KY_RING_MIN_BLOCKS ||
		g->n_blocks > KY_RING_MAX_BLOCKS)
		return -EINVAL;
	if (!ky_is_pow2(g->block_size) || g->block_size < KY_BLOCK_MIN ||
		g->block_size > KY_BLOCK_MAX || ring_size > KY_RING_MAX)
		return -EINVAL;
	if (!g->n_home)
		g->n_home = g->n_blocks;
	if (g->n_home < KY_RING_MIN_BLOCKS || g->n_home > g->n_blocks)
		return -EINVAL;
	if (ky_geometry_spreads(g) && (g->mode != KY_SET_PER_CPU || ring_size > KY_RING_SPREAD_MAX))
		return -EINVAL;
	g->slot_offset = g->ctl_offset = PAGE;
	if (g->mode == KY_SET_PER_THREAD)
		g->ctl_offset += ky_align_up(g->n_rings * sizeof(uint64_t), PAGE);
	g->table_offset = g->ctl_offset + (uint64_t)g->n_rings * KY_CTL_SIZE;
	g->table_stride = ky_align_up(g->n_blocks * sizeof(struct ky_block_entry), KY_CTL_SIZE);
	g->data_offset = ky_align_up(g->table_offset + g->n_rings * g->table_stride, PAGE);
	g->data_stride = ring_size;
	g->oldest_offset = g->data_offset + g->n_rings * g->data_stride;
	g->total_size = g->oldest_offset + ky_align_up(g->n_rings * sizeof(uint64_t), PAGE);
	return 0;
}

int ky_geometry_take(struct ky_geometry *g)
{
	uint64_t theirs = g->total_size;

	return ky_geometry_init(g) < 0 || g->total_size != theirs ? -EBADMSG : 0;
}
