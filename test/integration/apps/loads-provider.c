/* SPDX-License-Identifier: MIT */
/*
 * The library that apps/loads.c loads and unloads. It emits two events for each call, and one more
 * from its constructor.
 */
#include <kymo/tracepoint.h>

__attribute__((visibility("default"))) void provide(int thread, int n);

static __attribute__((constructor)) void begin(void)
{
	kymo_event(loads, constructed, kymo_i32(nothing, 0));
}

void provide(int thread, int n)
{
	kymo_event(loads, always, kymo_i32(thread, thread), kymo_i32(n, n));
	kymo_event(loads, sometimes, kymo_i32(thread, thread), kymo_i32(n, n));
}
