/* SPDX-License-Identifier: MIT */
/*
 * Freezes ring sets in overwrite mode: when a trigger in an application fires, writers overwrite
 * nothing more until the session daemon has a copy (docs/shm-abi.md, "Triggers").
 *
 * The word lies in the set's first page, so that it costs nothing while no trigger fires: writers
 * read it only before they enter a block. So each ring loses at most the one block that a writer
 * was just about to enter, and nothing after that.
 */
#ifndef RING_FREEZE_H
#define RING_FREEZE_H

#include "base/util.h"
#include "ring/geometry.h"

/* Returns the words in the first page of a set that is mapped at base. */
static inline struct ky_set_freeze *ky_freeze_of(void *base)
{
	return (struct ky_set_freeze *)((char *)base + KY_SET_FREEZE);
}

/*
 * Not 0: the calling thread records the event that has frozen the set. That event may overwrite the
 * oldest block.
 */
extern __thread uint32_t ky_freeze_exempt KY_THREAD_TLS;

/* Returns true if the calling thread may not overwrite the oldest block of the set. */
static inline bool ky_freeze_stops(const struct ky_geometry *g, void *base)
{
	/*
	 * Sequentially consistent: the caller has read the head before. So a writer that does not
	 * see the word read a head that is older than the freeze, and its change of blocks fails if
	 * another one came in between.
	 */
	return g->overwrite && __atomic_load_n(&ky_freeze_of(base)->word, __ATOMIC_SEQ_CST) &&
	       !ky_freeze_exempt;
}

/*
 * Fires the trigger, if it is enabled and has not fired. Returns true if the caller is the one that
 * fires it. Counts it in any case. The caller then freezes sets, records the event, and calls
 * ky_freeze_note_recorded.
 */
static inline bool ky_freeze_fire(void *base, uint32_t trigger)
{
	struct ky_set_freeze *f = ky_freeze_of(base);
	uint64_t bit = UINT64_C(1) << trigger;

	__atomic_fetch_add(&f->n_met[trigger], 1, __ATOMIC_RELAXED);
	if (!(__atomic_load_n(&f->armed, __ATOMIC_RELAXED) & bit))
		return false;
	return __atomic_fetch_and(&f->armed, ~bit, __ATOMIC_SEQ_CST) & bit;
}

/* Freezes the set, unless it is frozen. */
static inline void ky_freeze_set(void *base, uint32_t trigger, uint32_t process)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(&ky_freeze_of(base)->word, &none,
		KY_FROZEN_BY(trigger, process), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline void ky_freeze_note_recorded(void *base, uint32_t trigger)
{
	__atomic_fetch_or(&ky_freeze_of(base)->recorded, UINT64_C(1) << trigger, __ATOMIC_RELEASE);
}

#endif
