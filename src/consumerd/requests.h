/* SPDX-License-Identifier: MIT */
/* Follows the requests of the session daemon (docs/protocol.md, "Consumer"). */
#ifndef CONSUMERD_REQUESTS_H
#define CONSUMERD_REQUESTS_H

#include "consumerd/state.h"

/*
 * Follows one request. Returns 0, or -errno if it cannot. Sets the descriptors that it keeps to -1
 * in fds; the others stay the caller's.
 */
int requests_follow(struct consumerd *c, const void *buf, size_t len, int *fds, size_t n_fds);

#endif
