/* SPDX-License-Identifier: MIT */
/*
 * The parts of a set of threads' rings that this application has mapped.
 *
 * A set has addresses for more threads than most applications have. Most applications map it as a
 * whole, which costs nothing. One that may lock its memory, or runs in valgrind, maps it in parts:
 * KY_PART_FIRST slots first, and then as many again as all parts before. A part is mapped when the
 * listener prepares its slots; in valgrind also when a thread claims one of them before that. So
 * what `mlockall` locks, or valgrind examines, is less than twice the slots that are in use or
 * prepared.
 *
 *   slots:     0 .. 15 | 16 .. 31 | 32 ........ 63 | 64 ...................... 127 | ...
 *   part:         0    |    1     |       2        |              3                |
 *
 * The first part is mapped from the descriptor. Threads do not have that, and map a further part by
 * mremap() of the end of the part before, which lies before it in the file.
 */
#ifndef RING_PARTS_H
#define RING_PARTS_H

#include "ring/geometry.h"

#define KY_PART_FIRST 16u
#define KY_PARTS_MAX  13 /* for 65,536 slots */

/*
 * Addresses at which the whole set would have to lie for its control blocks, tables, oldest words
 * and data to be where they are. NULL: not mapped. Mapped in this order, so `data` says that all
 * are.
 */
struct ky_ring_part {
	void *ctl, *table, *oldest, *data;
};

struct ky_ring_parts {
	struct ky_ring_part part[KY_PARTS_MAX];
};

static inline unsigned int ky_part_of(uint32_t slot)
{
	return 31u - (unsigned int)__builtin_clz(slot / KY_PART_FIRST * 2 + 1);
}

/* Returns the part of the slot if it is mapped, else NULL. */
static inline const struct ky_ring_part *ky_parts_find(const struct ky_ring_parts *p, uint32_t slot)
{
	const struct ky_ring_part *part = &p->part[ky_part_of(slot)];

	/* Acquire: pairs with ky_parts_extend. The rest of the part is mapped, too. */
	return __atomic_load_n(&part->data, __ATOMIC_ACQUIRE) ? part : NULL;
}

/* The application may have a system call filter that forbids mremap(): threads map nothing. */
extern bool ky_parts_closed;

/*
 * Maps the parts up to the one of this slot, if they are not. fd: of the rings; or -1, if the first
 * part is mapped. Any thread and any signal handler may call it with -1. Changes errno. Returns the
 * slot's part, or NULL.
 */
const struct ky_ring_part *ky_parts_extend(
	struct ky_ring_parts *p, const struct ky_geometry *g, uint32_t slot, int fd);
/* Says that the whole set is mapped at base. */
static inline void ky_parts_set_whole(struct ky_ring_parts *p, void *base)
{
	for (int i = 0; i < KY_PARTS_MAX; i++)
		p->part[i] = (struct ky_ring_part){base, base, base, base};
}
/* Calls madvise() for all that is mapped. */
void ky_parts_advise(const struct ky_ring_parts *p, const struct ky_geometry *g, int advice);
/* Unmaps all parts. */
void ky_parts_unmap(struct ky_ring_parts *p, const struct ky_geometry *g);

#endif
