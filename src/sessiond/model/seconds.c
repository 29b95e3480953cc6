/* SPDX-License-Identifier: MIT */
#include "sessiond/model/seconds.h"

#include <sys/mman.h>

#include "sessiond/model/channel.h"
#include "sessiond/model/session.h"

#define PERIOD_NS (1000 * KY_NS_PER_MS)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Returns how many blocks a ring needs that has filled so many blocks in so many ticks. */
static uint64_t count_needed(uint64_t n_filled, uint64_t ticks, uint64_t wanted_ticks)
{
	double n = (double)n_filled * (double)wanted_ticks / (double)KY_MAX(ticks, UINT64_C(1));

	/* the block that is being written, and the one that is given up for the next */
	return (uint64_t)KY_MIN(n, (double)KY_RING_MAX_BLOCKS) + 2;
}

/*
 * Returns the number of blocks that writers have entered, and when the first of them was entered:
 * of those that the ring holds, or of all but the first, as long as it holds all. An application
 * may have written anything there: the caller limits what follows from it.
 */
static uint64_t count_filled(
	const struct ky_geometry *g, void *base, uint32_t ring, uint64_t *ret_begin)
{
	const struct ky_ring_ctl *ctl = ky_geometry_ctl(g, base, ring);
	uint64_t oldest = ky_ring_load_acquire(&ctl->oldest),
		 from = oldest ? oldest : g->block_size;
	const struct ky_block_entry *first = ky_geometry_entry(g, base, ring, from);
	const struct ky_block_entry *current = ky_geometry_entry(
		g, base, ring, ky_head_pos(ky_ring_load_acquire(&ctl->head), oldest));

	*ret_begin = ky_ring_load_acquire(&first->begin_ts);
	return *ret_begin ? ky_ring_load_acquire(&current->number) -
				    ky_ring_load_acquire(&first->number) + 1
			  : 0;
}

static void grow_ring(
	const struct ky_geometry *g, void *base, uint32_t ring, uint64_t now, uint64_t wanted)
{
	uint64_t *n_used = &ky_geometry_ctl(g, base, ring)->n_used;
	uint64_t used = KY_MAX(ky_ring_load_acquire(n_used), (uint64_t)g->n_home), begin, n_filled;

	if (used >= g->n_blocks)
		return;
	n_filled = KY_MIN(count_filled(g, base, ring, &begin), (uint64_t)g->n_blocks);
	if (n_filled && count_needed(n_filled, now - KY_MIN(now, begin), wanted) > used)
		__atomic_store_n(n_used, KY_MIN(2 * used, (uint64_t)g->n_blocks), __ATOMIC_RELAXED);
}

static bool has_growing_rings(const struct ring_set *set)
{
	return ring_set_is_made(set) && set->geometry.overwrite &&
	       ky_geometry_spreads(&set->geometry);
}

static void grow_set(struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	const struct session *s = set->channel->session;
	uint64_t now = ky_clock_read(s->clock.clock), wanted = s->seconds * s->clock.freq;
	void *base = mmap(
		NULL, g->data_offset, PROT_READ | PROT_WRITE, MAP_SHARED, set->memory.rings_fd, 0);

	if (base == MAP_FAILED)
		return;
	/* With its pages present, because memory may be short. */
	if (!madvise(base, g->data_offset, MADV_POPULATE_WRITE) || errno == EINVAL)
		for (uint32_t i = 0; i < g->n_rings; i++)
			grow_ring(g, base, i, now, wanted);
	munmap(base, g->data_offset);
}

/* Returns whether there is such a set. */
static bool grow_channel(struct channel *c)
{
	struct ring_set *set;
	bool any = false;

	ky_list_foreach (set, &c->sets, node) {
		if (!has_growing_rings(set))
			continue;
		any = true;
		/* Events that become older while nothing is recorded need no room. */
		if (c->session->state == SESSION_STARTED && set->memory.rings_fd >= 0)
			grow_set(set);
	}
	return any;
}

static void timer_due(struct ky_timer *t)
{
	struct env *e = ky_container_of(t, struct env, seconds_timer);
	struct session *s;
	struct channel *c;
	bool any = false;

	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			any |= grow_channel(c);
	if (any)
		ky_timer_set(&e->loop, t, PERIOD_NS);
}

void seconds_watch(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	if (has_growing_rings(set) && !ky_timer_is_set(&e->seconds_timer))
		ky_timer_set(&e->loop, &e->seconds_timer, PERIOD_NS);
}

static struct observer seconds = {.set_made = seconds_watch};

void seconds_init(struct env *e)
{
	ky_timer_init(&e->seconds_timer, timer_due);
	ky_list_append(&e->observers, &seconds.node);
}
