/* SPDX-License-Identifier: MIT */
/* Duplicates of all ring sets' descriptors, for a successor of the session daemon. */
#ifndef CONSUMERD_KEPT_H
#define CONSUMERD_KEPT_H

#include "consumerd/state.h"

#define N_SET_FDS 3u /* rings, consumed, metadata log: in this order in RING_SET and ADOPT */

void kept_init(struct consumerd *c);
void kept_deinit(struct consumerd *c);
/*
 * Duplicates the set's descriptors, to pass them to a successor. Does nothing if there can be none.
 * Returns 0 or -errno.
 */
int kept_add(struct consumerd *c, const struct ky_cons_ring_set *m, const int fds[N_SET_FDS]);
/* The same for the metadata log of a trace, which may have no set. */
int kept_add_log(struct consumerd *c, const struct ky_cons_adopt_log *m, int fd);
/* Closes the set's duplicated descriptors. */
void kept_release(struct consumerd *c, uint32_t set);
/* Passes all descriptors, or none: -EPERM while the successor has not recognised us. */
int kept_send_all(struct consumerd *c);

#endif
