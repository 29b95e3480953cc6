/* SPDX-License-Identifier: MIT */
/*
 * dropper UID: records 10 events, says "ready", waits for a line, becomes that user, waits until it has none of the rings' memory
 * mapped that it had, says "dropped", waits for a line, and records 10 more.
 */
#include <kymo/tracepoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void record(void)
{
	for (int i = 0; i < 10; i++)
		kymo_event(drop, event, kymo_i32(i, i));
}

/* The inodes of the rings' mappings. */
static unsigned find_rings(unsigned long *inodes, unsigned max)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	while (f && n < max && fgets(line, sizeof(line), f))
		if (strstr(line, "memfd:kymo-") &&
			sscanf(line, "%*s %*s %*s %*s %lu", &inodes[n]) == 1)
			n++;
	if (f)
		fclose(f);
	return n;
}

static int shares_any(const unsigned long *before, unsigned n_before)
{
	unsigned long now[64];
	unsigned n = find_rings(now, 64);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n_before; k++)
			if (now[i] == before[k])
				return 1;
	return 0;
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
	while (shares_any(inodes, n))
		usleep(1000);
	puts("dropped");
	fflush(stdout);
	getchar();
	record();
	return 0;
}
