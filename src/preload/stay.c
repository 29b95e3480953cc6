/* SPDX-License-Identifier: MIT */
/*
 * A preload library is never unloaded, and records to the end of the process: also what destructors
 * do that run after its own would have taken its events from the tracer.
 *
 * Without <kymo/tracepoint.h>, which names the tracer weakly: this name here makes linkers write
 * down that the tracer is needed.
 */
#include <stddef.h>

struct kymo_object;

void kymo_object_unregister(struct kymo_object *object);
/* What the library would call at its end: the header's, set by a constructor of higher priority. */
extern __attribute__((visibility("hidden"))) void (*kymo__leave)(struct kymo_object *object);

static __attribute__((constructor)) void stay(void)
{
	if (kymo__leave == kymo_object_unregister)
		kymo__leave = NULL;
}
