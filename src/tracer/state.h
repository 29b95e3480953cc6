/* SPDX-License-Identifier: MIT */
/*
 * The last value of each key of state events (<kymo/state.h>), reported to sessions that request
 * it. All functions are called under the lock.
 */
#ifndef TRACER_STATE_H
#define TRACER_STATE_H

#include "tracer/tracer.h"

#define TRACER_STATE_KEYS      4096u /* at the same time */
#define TRACER_STATE_VALUE_MAX 448u  /* bytes of an event's fields */

/* Drops the values of the events of an object that is being unloaded. */
void tracer_state_forget_object(const struct kymo_object *object);

#endif
