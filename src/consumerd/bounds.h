/* SPDX-License-Identifier: MIT */
/*
 * The bounds of a trace on disk. If it has more archived chunks than it may, removes the oldest
 * ones. The daemon rotates the session, so that there are archives to remove (peers/rotation.h).
 */
#ifndef CONSUMERD_BOUNDS_H
#define CONSUMERD_BOUNDS_H

#include "consumerd/state.h"

/* Checks the bounds if a second is over since the last time, or `now_ns` is 0. */
void bounds_enforce(struct consumerd *c, uint64_t now_ns);

#endif
