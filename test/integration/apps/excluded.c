/* SPDX-License-Identifier: MIT */
/*
 * Emits a state dump and three events with excluded fields. Prints "ready", then waits for a line.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "excluded-tp.h"
#include <kymo/statedump.h>
#include <stdio.h>

static void emit_state(void *data)
{
	for (int i = 0; i < 3; i++)
		lttng_ust_tracepoint(excluded, state, i, (const char *)data);
}

static struct kymo_statedump dump = {
	sizeof(dump), 0, emit_state, (void *)(uintptr_t) "a text of some length"};

int main(void)
{
	kymo_statedump_register(&dump);
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
