/* SPDX-License-Identifier: MIT */
/*
 * Sizes rings in overwrite mode by observed rates (`kymo create --snapshot --seconds`): a ring that
 * holds a shorter time than the session wants gets more blocks, up to all that it has
 * (docs/shm-abi.md, "Spreading"). It at most doubles at a time, and never becomes smaller.
 *
 * A timer runs while there is such a set.
 */
#ifndef SESSIOND_MODEL_SECONDS_H
#define SESSIOND_MODEL_SECONDS_H

#include "sessiond/model/env.h"
#include "sessiond/model/ring-set.h"

#define SECONDS_MAX (7u * 24 * 3600) /* the longest time that a session can request */

void seconds_init(struct env *e);
/*
 * The set has its memory: examines it from now on, if its rings are to grow. An observer does this
 * for sets that are made; the caller does it for those of a predecessor.
 */
void seconds_watch(struct ring_set *set);

#endif
