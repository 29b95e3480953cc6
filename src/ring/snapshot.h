/* SPDX-License-Identifier: MIT */
/*
 * A copy of what a ring holds at a moment, taken while programs go on writing it and another reader
 * may drain it. Used by consumers that write snapshots (docs/shm-abi.md, "Snapshots").
 *
 * Nobody waits for us and nobody knows of us, so a writer may overwrite what is being copied. It
 * says so before it does: `oldest` rises first. So the copy is made, `oldest` is looked at again (behind the data),
 * and what lies before it now is left out. What stays was not touched while it was copied.
 *
 * The copy lies in memory with the layout of the set, at the same offsets, so that everything that
 * reads a ring can read the copy; and as nobody writes there, it stands still.
 */
#ifndef RING_SNAPSHOT_H
#define RING_SNAPSHOT_H

#include "ring/drain.h"

/*
 * Copies ring i of the set at `base` to `copy`: both have the total_size bytes of a checked geometry.
 * Initializes d to drain the copy, from the oldest whole block on; d->count is the number of records
 * that were published before it, and overwritten. 0; -EBADMSG when the ring's words make no sense; -ENODATA when all of it is
 * overwritten again and again, or was while the file was copied that `base` is the memory of.
 */
int ky_snapshot_ring(
	struct ky_drain *d, const struct ky_geometry *g, void *base, void *copy, uint32_t i);

#endif
