/* SPDX-License-Identifier: MIT */
#include "svc/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

/* Returns the next entry that is not the directory itself or its parent; NULL at the end. */
static const char *next_name(DIR *dir)
{
	struct dirent *e;

	do {
		e = readdir(dir);
	} while (e && (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")));
	return e ? e->d_name : NULL;
}

/* Removes all entries, and closes fd. */
static int remove_below(int fd)
{
	DIR *dir = fdopendir(fd);
	const char *name;
	int ret = 0, r;

	if (!dir) {
		ret = -errno;
		close(fd);
		return ret;
	}
	while ((name = next_name(dir))) {
		fd = openat(dirfd(dir), name, DIR_FLAGS);
		r = fd < 0 ? 0 : remove_below(fd);
		if (!r && unlinkat(dirfd(dir), name, fd < 0 ? 0 : AT_REMOVEDIR) < 0)
			r = errno == ENOENT ? 0 : -errno;
		ret = ret ? ret : r;
	}
	closedir(dir);
	return ret;
}

int ky_tree_remove(int parent, const char *name)
{
	int fd = openat(parent, name, DIR_FLAGS), ret;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	ret = remove_below(fd);
	if (!ret && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		ret = -errno;
	return ret;
}

uint64_t ky_tree_file_bytes(const struct stat *st)
{
	if (!st->st_blocks && S_ISREG(st->st_mode))
		return (uint64_t)st->st_size;
	return (uint64_t)st->st_blocks * 512;
}

uint64_t ky_tree_bytes(int parent, const char *name)
{
	int fd = openat(parent, name, DIR_FLAGS);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t bytes = 0;
	const char *entry;
	struct stat st;

	if (!dir) {
		ky_close(fd);
		return 0;
	}
	while ((entry = next_name(dir)))
		if (!fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW))
			bytes += ky_tree_file_bytes(&st) + ky_tree_bytes(fd, entry);
	closedir(dir);
	return bytes;
}
