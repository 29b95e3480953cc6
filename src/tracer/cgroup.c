/* SPDX-License-Identifier: MIT */
#include "tracer/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/small-file.h"
#include "base/util.h"

#define GROUPS_MAX 4096 /* bytes of /proc/self/cgroup */

/* Lowers *least to the limit of the group at root + path, and of the groups that it is in. */
static void lower(uint64_t *least, const char *root, char *path, const char *file)
{
	char name[256], text[32], *end;
	uint64_t limit;

	for (end = path + strlen(path); end; end = strrchr(path, '/')) {
		*end = '\0';
		snprintf(name, sizeof(name), "%s%s/%s", root, path, file);
		if (ky_read_text(AT_FDCWD, name, text, sizeof(text)) < 0 || text[0] < '0' ||
			text[0] > '9')
			continue; /* "max": no limit */
		limit = strtoull(text, NULL, 10);
		*least = KY_MIN(*least, limit);
	}
}

/*
 * /proc/self/cgroup has lines NUMBER:CONTROLLERS:PATH (cgroups(7)). Version 2 is "0::PATH". Paths
 * are those that the process sees below /sys/fs/cgroup.
 */
static uint64_t limit_of(char *groups)
{
	char *line, *next, *path;
	uint64_t least = UINT64_MAX;

	for (line = groups; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = strchr(line, '/');
		if (!path)
			continue;
		if (!strncmp(line, "0::", 3))
			lower(&least, "/sys/fs/cgroup", path, "memory.max");
		else if (strstr(line, ":memory:"))
			lower(&least, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes");
	}
	return least;
}

/* The text is not on the stack, whose pages would stay with the process. */
uint64_t tracer_memory_max(void)
{
	char *groups = mmap(
		NULL, GROUPS_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t least = UINT64_MAX;

	if (groups == MAP_FAILED)
		return least;
	if (ky_read_text(AT_FDCWD, "/proc/self/cgroup", groups, GROUPS_MAX) >= 0)
		least = limit_of(groups);
	munmap(groups, GROUPS_MAX);
	return least;
}
