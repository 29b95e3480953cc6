/* SPDX-License-Identifier: MIT */
/* Finds the rings that the calling process has mapped, for programs that change their user. */
#ifndef APPS_MAPPED_H
#define APPS_MAPPED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Collects the inodes of the mapped rings. */
static inline unsigned find_rings(unsigned long *inodes, unsigned max)
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

static inline int shares_any(const unsigned long *before, unsigned n_before)
{
	unsigned long now[64];
	unsigned n = find_rings(now, 64);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < n_before; k++)
			if (now[i] == before[k])
				return 1;
	return 0;
}

/* Returns when no ring with one of these inodes is mapped any more. */
static inline void wait_until_unmapped(const unsigned long *inodes, unsigned n)
{
	while (shares_any(inodes, n))
		usleep(1000);
}

#endif
