/* SPDX-License-Identifier: MIT */
/*
 * dropper UID: records 10 events, says "ready", waits for a line, becomes that user, waits until it has none of the rings' memory
 * mapped that it had, says "dropped", waits for a line, and records 10 more.
 */
#include <kymo/tracepoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mapped.h"

static void record(void)
{
	for (int i = 0; i < 10; i++)
		kymo_event(drop, event, kymo_i32(i, i));
}

int main(int argc, char **argv)
{
	unsigned long inodes[64];
	unsigned n;

	(void)argc;
	record();
	n = find_rings(inodes, 64);
	puts(n ? "ready" : "no rings");
	fflush(stdout);
	getchar();
	if (setuid((uid_t)atoi(argv[1])))
		return 1;
	wait_until_unmapped(inodes, n);
	puts("dropped");
	fflush(stdout);
	getchar();
	record();
	return 0;
}
