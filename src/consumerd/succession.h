/* SPDX-License-Identifier: MIT */
/*
 * What outlives a session daemon that was killed: the consumer goes on draining, holds the descriptors of all ring sets,
 * and hands them to the daemon's successor, which it calls until somebody answers. docs/recovery.md.
 */
#ifndef CONSUMERD_SUCCESSION_H
#define CONSUMERD_SUCCESSION_H

#include "consumerd/consumer.h"

#define N_SET_FDS 3u /* rings, consumed, metadata log: in this order in RING_SET and ADOPT */

void succession_init(struct consumer *c);
void succession_deinit(struct consumer *c);
/* Keeps copies of the set's descriptors, if there can be a successor. 0 or -errno. */
int succession_keep(struct consumer *c, const struct ky_cons_ring_set *m, const int fds[N_SET_FDS]);
/* Closes them. */
void succession_release(struct consumer *c, uint32_t set);
/* The daemon is gone: calls its successor now and then. False when there is none to wait for. */
bool succession_begin(struct consumer *c);

#endif
