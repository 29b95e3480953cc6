/* SPDX-License-Identifier: MIT */
/*
 * A library that registers its state dump when it is loaded, and does not unregister it when it is
 * unloaded. With QUIET it has no event.
 */
#include <kymo/statedump.h>

static int n;

static void tell(void *data)
{
	(void)data;
	n++;
#ifndef QUIET
	kymo_event(library, state, kymo_i32(n, n));
#endif
}

static struct kymo_statedump dump = {sizeof(dump), 0, tell, NULL};

static __attribute__((constructor)) void begin(void)
{
	kymo_statedump_register(&dump);
}
