/* SPDX-License-Identifier: MIT */
/*
 * Survives the death of the session daemon. The consumer continues to drain, holds the descriptors
 * of all ring sets, and passes them to the daemon's successor. It tries to connect until a
 * successor replies. See docs/recovery.md.
 */
#ifndef CONSUMERD_SUCCESSION_H
#define CONSUMERD_SUCCESSION_H

#include "consumerd/consumer.h"

#define N_SET_FDS 3u /* rings, consumed, metadata log: in this order in RING_SET and ADOPT */

void succession_init(struct consumer *c);
void succession_deinit(struct consumer *c);
/*
 * Duplicates the set's descriptors, to pass them to a successor. Does nothing if there can be none.
 * Returns 0 or -errno.
 */
int succession_keep(struct consumer *c, const struct ky_cons_ring_set *m, const int fds[N_SET_FDS]);
/* Closes the set's duplicated descriptors. */
void succession_release(struct consumer *c, uint32_t set);
/*
 * Starts to reconnect, from time to time, after the session daemon died. Returns false if there can
 * be no successor.
 */
bool succession_begin(struct consumer *c);

#endif
