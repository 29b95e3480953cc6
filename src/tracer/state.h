/* SPDX-License-Identifier: MIT */
/* The last value of each key of state events (<kymo/state.h>), told to sessions that ask. All under the lock. */
#ifndef TRACER_STATE_H
#define TRACER_STATE_H

#include "tracer/tracer.h"

#define TRACER_STATE_KEYS      4096u /* at a time */
#define TRACER_STATE_VALUE_MAX 448u  /* bytes of an event's fields */

/* The object is being unloaded: values of its events are forgotten. */
void tracer_state_forget_object(const struct kymo_object *object);

#endif
