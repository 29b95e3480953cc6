/* SPDX-License-Identifier: MIT */
#include "sessiond/model/surplus.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "sessiond/model/channel.h"
#include "sessiond/model/contents.h"
#include "svc/log.h"

/*
 * A writer checks the claim in the restartable sequence that enters the block. So a block that was
 * claimed a period ago, and was not entered, is not being entered.
 */
#define PERIOD_NS (1000 * KY_NS_PER_MS)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Mappings of a set while it is examined. */
struct view {
	struct ring_set *set;
	const struct ky_geometry *g;
	void *base;		  /* up to the data */
	const uint64_t *consumed; /* positions of the consumer */
	bool changed;		  /* something was done, or may soon be */
};

static void view_close(struct view *v)
{
	if (v->base != MAP_FAILED)
		munmap(v->base, v->g->data_offset);
	if (v->consumed != MAP_FAILED)
		munmap((void *)v->consumed, v->g->n_rings * sizeof(uint64_t));
}

/* Maps the tables with their pages present, because memory may be short. */
static bool view_open(struct view *v, struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;

	*v = (struct view){.set = set, .g = g};
	v->base = mmap(
		NULL, g->data_offset, PROT_READ | PROT_WRITE, MAP_SHARED, set->memory.rings_fd, 0);
	v->consumed = mmap(NULL, g->n_rings * sizeof(uint64_t), PROT_READ, MAP_SHARED,
		set->memory.consumed_fd, 0);
	if (v->base != MAP_FAILED && v->consumed != MAP_FAILED &&
		(!madvise(v->base, g->data_offset, MADV_POPULATE_WRITE) || errno == EINVAL))
		return true;
	view_close(v);
	return false;
}

static bool is_current(const struct view *v, uint32_t ring, uint64_t block)
{
	uint64_t head = ky_ring_load_acquire(&ky_geometry_ctl(v->g, v->base, ring)->head);

	return (head & ky_geometry_ring_mask(v->g)) / v->g->block_size == block;
}

/* Gives the memory of a claimed block back, and frees the block. */
static void give_back(
	struct view *v, uint32_t ring, uint64_t block, struct ky_block_entry *entry, uint64_t next)
{
	const struct ky_geometry *g = v->g;
	uint64_t at = g->data_offset + ring * g->data_stride + block * g->block_size;

	__atomic_store_n(&entry->emptied, next + 1, __ATOMIC_SEQ_CST);
	fallocate(v->set->memory.rings_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
		g->block_size);
	if (is_current(v, ring, block) || ky_ring_load_acquire(&entry->next) != next)
		session_notice(v->set->channel->session,
			"channel '%s': an application that had stood still continued while memory of its buffer was given back: some records of CPU %" PRIu32
			" may be damaged",
			v->set->channel->name, ring);
	__atomic_store_n(&entry->claimed, 0, __ATOMIC_RELEASE);
}

static void examine_block(struct view *v, uint32_t ring, uint64_t block)
{
	struct ky_block_entry *entry = ky_geometry_entry(
		v->g, v->base, ring, block * v->g->block_size);
	uint64_t next = ky_ring_load_acquire(&entry->next);

	if (is_current(v, ring, block) || next > v->set->consumed_then[ring])
		return;
	v->changed = true;
	if (ky_ring_load_acquire(&entry->claimed) == next + 1)
		give_back(v, ring, block, entry, next);
	else
		__atomic_store_n(&entry->claimed, next + 1, __ATOMIC_SEQ_CST);
}

/* Examines the ring's blocks that have memory, beyond the home blocks. */
static void examine_ring(struct view *v, uint32_t ring)
{
	const struct ky_geometry *g = v->g;
	uint64_t begin = g->data_offset + ring * g->data_stride, end = begin + g->data_stride;
	off_t at = (off_t)(begin + ky_geometry_home_size(g));

	while ((at = lseek(v->set->memory.rings_fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < end) {
		uint64_t block = ((uint64_t)at - begin) / g->block_size;

		examine_block(v, ring, block);
		at = (off_t)(begin + (block + 1) * g->block_size);
	}
	v->changed |= v->consumed[ring] != v->set->consumed_then[ring];
	v->set->consumed_then[ring] = ky_ring_load_acquire(&v->consumed[ring]);
}

/* Returns true if the set is to be examined again. */
static bool examine_set(struct ring_set *set)
{
	const struct ky_geometry *g = &set->geometry;
	uint64_t home = g->total_size - g->n_rings * (g->data_stride - ky_geometry_home_size(g));
	bool first = !set->consumed_then;
	struct view v;

	if (ring_memory_in_use(&set->memory) <= home)
		return false;
	if (first)
		set->consumed_then = calloc(g->n_rings, sizeof(uint64_t));
	if (!set->consumed_then || !view_open(&v, set))
		return false;
	for (uint32_t i = 0; i < g->n_rings; i++)
		examine_ring(&v, i);
	view_close(&v);
	return v.changed || first;
}

static void surplus_end(struct ring_set *set)
{
	set->has_surplus = false;
	free(set->consumed_then);
	set->consumed_then = NULL;
}

static void timer_due(struct ky_timer *t)
{
	struct env *e = ky_container_of(t, struct env, surplus_timer);
	struct ring_set *set;
	struct session *s;
	struct channel *c;
	bool any = false;

	ky_list_foreach (s, &e->sessions, node)
		ky_list_foreach (c, &s->channels, node)
			ky_list_foreach (set, &c->sets, node) {
				if (set->has_surplus && !examine_set(set))
					surplus_end(set);
				any |= set->has_surplus;
			}
	if (any)
		ky_timer_set(&e->loop, t, PERIOD_NS);
}

void surplus_examine(struct ring_set *set)
{
	struct env *e = set->channel->session->env;

	if (set->has_surplus || !ring_set_is_made(set) || !ky_geometry_spreads(&set->geometry) ||
		set->geometry.overwrite)
		return;
	set->has_surplus = true;
	if (!ky_timer_is_set(&e->surplus_timer))
		ky_timer_set(&e->loop, &e->surplus_timer, PERIOD_NS);
}

void surplus_init(struct env *e)
{
	ky_timer_init(&e->surplus_timer, timer_due);
}
