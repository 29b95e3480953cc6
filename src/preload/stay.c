/* SPDX-License-Identifier: MIT */
/*
 * A preload library is never unloaded, and records until the process ends. That includes
 * destructors that run after its own destructor, which would have removed its events from the
 * tracer.
 *
 * This file does not include <kymo/tracepoint.h>, which refers to the tracer weakly: this reference
 * makes linkers note that the tracer is needed.
 */
#include <stddef.h>

struct kymo_object;

void kymo_object_unregister(struct kymo_object *object);
/*
 * The function that the library would call at its end: the header's, set by a constructor of higher
 * priority.
 */
extern __attribute__((visibility("hidden"))) void (*kymo__leave)(struct kymo_object *object);

static __attribute__((constructor)) void stay(void)
{
	if (kymo__leave == kymo_object_unregister)
		kymo__leave = NULL;
}
