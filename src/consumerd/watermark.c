/* SPDX-License-Identifier: MIT */
#include "consumerd/watermark.h"

#include "base/clock.h"
#include "consumerd/stream/stream-set.h"

#define DELAY_NS (2 * KY_NS_PER_MS)

/* Returns the session's clock, or 0 before the first set. */
static uint64_t read_clock(const struct consumerd *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		return ky_clock_read(set->sources->clock);
	return 0;
}

/* Pairs with the daemon's write, before an application gets the set. */
static bool knows_all_sets(const struct consumerd *c)
{
	return __atomic_load_n(&c->session->n_sets, __ATOMIC_ACQUIRE) <= c->n_sets;
}

void watermark_begin_round(struct consumerd *c)
{
	struct watermark *w = &c->watermark;
	const uint64_t clock = read_clock(c), now = ky_clock_ns(CLOCK_MONOTONIC);

	if (now - w->read_ns < DELAY_NS || !knows_all_sets(c))
		return;
	/* The clock's own frequency is that since the round before. */
	w->published = w->clock ? clock - (uint64_t)((double)(clock - w->clock) * DELAY_NS /
						     (double)(now - w->read_ns))
				: 0;
	w->clock = clock;
	w->read_ns = now;
}

void watermark_add_set(const struct consumerd *c, struct stream_set *set)
{
	set->complete_clock = c->watermark.clock;
}

static bool any_flushed(const struct consumerd *c)
{
	const struct stream_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (set->flush)
			return true;
	return false;
}

/* Returns the clock up to which all records of all sets are written. */
static uint64_t least_complete(struct consumerd *c)
{
	uint64_t least = c->watermark.published;
	struct stream_set *set;

	ky_list_foreach (set, &c->sets, node) {
		if (stream_set_is_complete(set))
			set->complete_clock = c->watermark.published;
		least = KY_MIN(least, set->complete_clock);
	}
	return least;
}

static void store_watermark(struct consumerd *c, const struct ky_watermark *next, bool force)
{
	struct watermark *w = &c->watermark;
	uint64_t now = ky_loop_now_ns();

	if (!memcmp(next, &w->stored, sizeof(*next)) || !fault_may_try(&w->fault, force, now))
		return;
	if (!fault_set(&w->fault, c->sink->ops->watermark(c->sink, next), now))
		w->stored = *next;
}

void watermark_update(struct consumerd *c)
{
	struct ky_watermark next = {.chunk = c->session->chunk};

	if (c->snapshot || (!any_flushed(c) && !c->watermark.fault.error))
		return;
	next.clock = KY_MAX(c->watermark.stored.clock, least_complete(c));
	if (next.clock)
		store_watermark(c, &next, false);
}

void watermark_end(struct consumerd *c)
{
	const struct ky_watermark end = {UINT64_MAX, c->session->chunk, KY_WATERMARK_ENDED};

	if (!c->snapshot && !ky_list_empty(&c->traces))
		store_watermark(c, &end, true);
}
