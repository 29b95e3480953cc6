/* SPDX-License-Identifier: MIT */
/*
 * Who owns which ring of a set of threads' rings (docs/shm-abi.md, "Slots"). Claims and releases are the tracer's, in any
 * context: one compare-and-exchange of a slot word each, which may be killed at any instruction. The session daemon
 * frees what a dead process has left; consumers look how many slots there are to look at.
 *
 * A slot word is all that counts, and holds for a free slot the number of the release that freed it: so the slot that was
 * freed first is found without a list, and a slot cannot be claimed twice by somebody who looked at it long ago.
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
	/* Acquire: of a free slot, all that its owner did is seen. Pairs with its release in slots.c. */
	return __atomic_load_n(ky_geometry_slot(g, base, i), __ATOMIC_ACQUIRE);
}

/* Slots that were ever claimed are those before this one; never more than there are. */
uint32_t ky_slots_claimed(const struct ky_geometry *g, void *base);
/* Frees a slot that the caller owns, or whose owner is dead. */
void ky_slot_release(const struct ky_geometry *g, void *base, uint32_t i);
/* Frees all slots of a dead process, whose number in slot words this is. Returns how many. */
uint32_t ky_slots_release_process(const struct ky_geometry *g, void *base, uint32_t process);

#endif
