/* SPDX-License-Identifier: MIT */
/*
 * Owners of the rings in a set of threads' rings (docs/shm-abi.md, "Slots"). The tracer claims and
 * releases slots in any context, by one compare-and-exchange of a slot word each. It may be killed
 * at any instruction. The session daemon frees the slots of a process that exited. Consumers read
 * how many slots they have to examine.
 *
 * Only the slot word decides. In a free slot it holds the number of the release that freed it. So
 * the slot that was freed first is found without a list, and a thread that read the word long ago
 * cannot claim a slot that was claimed since.
 */
#ifndef RING_SLOTS_H
#define RING_SLOTS_H

#include "ring/geometry.h"

static inline struct ky_set_slots *ky_slots_shared(void *base)
{
	return (struct ky_set_slots *)((char *)base + KY_SET_SLOTS);
}

static inline uint64_t ky_slot_word(const struct ky_geometry *g, void *base, uint32_t i)
{
	/*
	 * Acquire: of a free slot, everything that its owner did is visible. Pairs with the release
	 * in slots.c.
	 */
	return __atomic_load_n(ky_geometry_slot(g, base, i), __ATOMIC_ACQUIRE);
}

/* Returns how many slots, from the first, were ever claimed; never more than the set has. */
uint32_t ky_slots_claimed(const struct ky_geometry *g, void *base);
/* Frees a slot that the caller owns, or whose owner has exited. */
void ky_slot_release(const struct ky_geometry *g, void *base, uint32_t i);
/*
 * Frees all slots of a process that exited. `process` is its number in slot words. Returns how
 * many.
 */
uint32_t ky_slots_release_process(const struct ky_geometry *g, void *base, uint32_t process);

#endif
