/* SPDX-License-Identifier: MIT */
/*
 * dropper UID [return]: records 10 events, prints "ready", and waits for a line. Then it changes to
 * that user, waits until it has unmapped all rings that it had mapped before, prints "dropped",
 * waits for a line, and records 10 more events. With return, it is that user for a time only, and
 * waits for no rings; after the events, it becomes itself again, prints "back", waits for a line,
 * and records 10 more.
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

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
	getchar();
}

static int be_for_a_time(uid_t user)
{
	uid_t self = geteuid();

	if (seteuid(user))
		return 1;
	say("dropped");
	record();
	if (seteuid(self))
		return 1;
	say("back");
	record();
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long inodes[64];
	unsigned n;

	record();
	n = find_rings(inodes, 64);
	say(n ? "ready" : "no rings");
	if (argc > 2)
		return be_for_a_time((uid_t)atoi(argv[1]));
	if (setuid((uid_t)atoi(argv[1])))
		return 1;
	wait_until_unmapped(inodes, n);
	say("dropped");
	record();
	return 0;
}
