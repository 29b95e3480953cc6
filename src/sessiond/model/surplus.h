/* SPDX-License-Identifier: MIT */
/*
 * Gives back the memory of rings that have grown while the consumer was late (docs/shm-abi.md,
 * "Spreading"). The blocks beyond the home blocks that have been free for a period are claimed, so
 * that no writer enters them. A period later their memory is returned to the machine, and they are
 * free again.
 *
 * A timer runs only while a set has such memory and something changes. So an idle session wakes
 * nobody.
 */
#ifndef SESSIOND_MODEL_SURPLUS_H
#define SESSIOND_MODEL_SURPLUS_H

#include "sessiond/model/env.h"
#include "sessiond/model/ring-set.h"

void surplus_init(struct env *e);
/* The set may have grown: examines it until it has no more memory than its home blocks. */
void surplus_examine(struct ring_set *set);

#endif
