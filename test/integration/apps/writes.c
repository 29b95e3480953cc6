/* SPDX-License-Identifier: MIT */
/*
 * writes N [CPU]: N times an event, a write(2) of one byte, and an event again; with CPU, on that
 * one. Waits on standard input before it begins if -w comes first. Prints its process's number.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kymo/tracepoint.h>

static void choose_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		exit(3);
}

int main(int argc, char **argv)
{
	int fd = open("/dev/null", O_WRONLY), waits = argc > 1 && !strcmp(argv[1], "-w");
	unsigned i, n;
	char c;

	argv += waits;
	argc -= waits;
	n = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	if (argc > 2)
		choose_cpu(atoi(argv[2]));
	printf("%d\n", (int)getpid());
	fflush(stdout);
	if (waits && read(0, &c, 1) < 0)
		return 2;
	for (i = 0; i < n; i++) {
		kymo_event(writes, before, kymo_u32(i, i));
		if (write(fd, "", 1) != 1)
			return 1;
		kymo_event(writes, after, kymo_u32(i, i));
	}
	return 0;
}
