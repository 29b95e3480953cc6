/* SPDX-License-Identifier: MIT */
#include "ship/archives.h"

#include <dirent.h>
#include <fcntl.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Opens a directory for reading its entries. path: from `parent`. Returns NULL if it has none. */
static DIR *open_entries(int parent, const char *path)
{
	int fd = openat(parent, path, DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		ky_close(fd);
	return d;
}

/* Its name ends with its number: BEGIN-END-N. Archives of one number are of two daemons. */
static struct archive archive_named(const char *name)
{
	const char *dash = strrchr(name, '-');
	struct archive a = {.number = dash ? strtoull(dash + 1, NULL, 10) : 0};

	snprintf(a.name, sizeof(a.name), "%s", name);
	return a;
}

static bool is_behind(const struct archive *a, const struct archive *other)
{
	if (!*other->name || a->number == other->number)
		return strcmp(a->name, other->name) > 0;
	return a->number > other->number;
}

bool archives_next(int trace, struct archive *a)
{
	struct archive next = {0};
	DIR *d = open_entries(trace, ARCHIVES_NAME);
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		const struct archive found = archive_named(e->d_name);

		if (e->d_name[0] != '.' && is_behind(&found, a) &&
			(!*next.name || is_behind(&next, &found)))
			next = found;
	}
	if (d)
		closedir(d);
	if (*next.name)
		*a = next;
	return *next.name;
}

enum archive_state archives_state(int trace, const char *name)
{
	enum archive_state state = ARCHIVE_EMPTY, of_top;
	char path[sizeof(ARCHIVES_NAME) + NAME_MAX + 1];
	const struct dirent *e;
	DIR *d;

	snprintf(path, sizeof(path), ARCHIVES_NAME "/%s", name);
	d = open_entries(trace, path);
	while (d && (e = readdir(d))) {
		_cleanup_close_ int top = e->d_name[0] == '.'
						  ? -1
						  : openat(dirfd(d), e->d_name, DIR_FLAGS);

		if (top < 0)
			continue;
		of_top = !faccessat(top, ARCHIVES_SHIPPED, F_OK, 0)	? ARCHIVE_SHIPPED
			 : !faccessat(top, ARCHIVES_RECORDING, F_OK, 0) ? ARCHIVE_BEGUN
									: ARCHIVE_NEW;
		state = KY_MAX(state, of_top);
	}
	if (d)
		closedir(d);
	return state;
}

void archives_begin(int trace, struct archive *ret)
{
	struct archive a = {0};

	*ret = a;
	while (archives_next(trace, &a) && archives_state(trace, a.name) < ARCHIVE_BEGUN)
		*ret = a;
}

unsigned archives_count_new(int trace)
{
	struct archive a = {0};
	unsigned n = 0;

	while (archives_next(trace, &a))
		n += archives_state(trace, a.name) == ARCHIVE_NEW;
	return n;
}
