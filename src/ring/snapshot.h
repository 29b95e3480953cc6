/* SPDX-License-Identifier: MIT */
/*
 * A copy of what a ring holds at a moment, taken while applications write the ring and another
 * reader may drain it. Consumers that write snapshots use it (docs/shm-abi.md, "Snapshots").
 *
 * Writers do not know of the copy and do not wait for it, so a writer may overwrite what is being
 * copied. It announces that before it does it: `oldest` rises first. So this code makes the copy,
 * reads `oldest` again (the one behind the data), and leaves out what lies before that position.
 * The rest was not overwritten while it was copied.
 *
 * The copy has the layout of the set, with the same offsets, so that all code that reads a ring can
 * read the copy. Nobody writes to it.
 */
#ifndef RING_SNAPSHOT_H
#define RING_SNAPSHOT_H

#include "ring/drain.h"

/*
 * Copies ring i of the set at `base` to `copy`. Both have the total_size bytes of a checked
 * geometry. fd: of the memory at `base`, or -1: see ky_snapshot_is_backed. Initializes d to drain
 * the copy from the oldest whole block on. d->count is the number of records that were published
 * before that block, and overwritten. Returns 0; -EBADMSG if the ring's words are invalid; -ENODATA
 * if all of the ring is overwritten again and again, or was overwritten while the file behind
 * `base` was copied.
 */
int ky_snapshot_ring(struct ky_drain *d, const struct ky_geometry *g, void *base, void *copy,
	uint32_t i, int fd);
/*
 * Returns true if the memory fd has all of the block at `pos` in ring i, up to `len` bytes of
 * records. An application can write control words as if it had filled rings: to read these would
 * allocate memory that it never took. True if fd is -1.
 */
bool ky_snapshot_is_backed(
	const struct ky_geometry *g, int fd, uint32_t i, uint64_t pos, uint64_t len);

#endif
