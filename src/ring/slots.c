/* SPDX-License-Identifier: MIT */
#include "ring/slots.h"

uint32_t ky_slots_claimed(const struct ky_geometry *g, void *base)
{
	uint64_t n = __atomic_load_n(&ky_slots_shared(base)->n_claimed, __ATOMIC_RELAXED);

	return (uint32_t)KY_MIN(n, (uint64_t)g->n_rings);
}

void ky_slot_release(const struct ky_geometry *g, void *base, uint32_t i)
{
	uint64_t n = __atomic_add_fetch(&ky_slots_shared(base)->n_released, 1, __ATOMIC_RELAXED);

	/* Release: pairs with ky_slot_word, and with the next claim. */
	__atomic_store_n(ky_geometry_slot(g, base, i), n << 2, __ATOMIC_RELEASE);
}

uint32_t ky_slots_release_process(const struct ky_geometry *g, void *base, uint32_t process)
{
	uint32_t n = ky_slots_claimed(g, base), n_freed = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t word = ky_slot_word(g, base, i);

		if (!(word & KY_SLOT_OWNED) || word >> 32 != process)
			continue;
		ky_slot_release(g, base, i);
		n_freed++;
	}
	return n_freed;
}
