/* SPDX-License-Identifier: MIT */
/*
 * Sources that are rings in shared memory (abi/ring.h), and copies of such rings for a snapshot.
 *
 * The rings are mapped read-only. Memfds are sealed, so nobody can make them shorter. A program may
 * truncate other files (svc/shm-dir.h); the consumer then reads zeros (svc/sigbus.h). A copy is
 * private memory of the same layout.
 */
#ifndef CONSUMERD_SOURCE_RINGS_H
#define CONSUMERD_SOURCE_RINGS_H

#include "consumerd/source/source.h"
#include "proto/consumer.h"

/*
 * Maps the rings of a set that the session daemon sent. The descriptors stay the caller's. Returns
 * 0 or -errno; -EBADMSG if the description is invalid.
 */
int rings_map(const struct ky_cons_ring_set *m, int rings_fd, int consumed_fd,
	struct source_set **ret_set);
/* Copies the rings as they are now. Returns as rings_map(). */
int rings_copy(const struct ky_cons_ring_set *m, int rings_fd, struct source_set **ret_set);

#endif
