/* SPDX-License-Identifier: MIT */
/*
 * dropper UID: records 10 events, prints "ready", and waits for a line. Then it changes to that
 * user, waits until it has unmapped all rings that it had mapped before, prints "dropped", waits
 * for a line, and records 10 more events.
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
