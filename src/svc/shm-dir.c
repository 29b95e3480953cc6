/* SPDX-License-Identifier: MIT */
#include "svc/shm-dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif
#define ZFS_SUPER_MAGIC 0x2fc12fc1

#define BUFFERS	  "buffers"
#define METADATA  "metadata"
#define POSITIONS "positions"

static const char *const folders[] = {BUFFERS, METADATA, POSITIONS};

void ky_shm_buffers(char name[KY_SHM_NAME_MAX], uint32_t set)
{
	snprintf(name, KY_SHM_NAME_MAX, BUFFERS "/%u", set);
}

void ky_shm_positions(char name[KY_SHM_NAME_MAX], uint32_t set)
{
	snprintf(name, KY_SHM_NAME_MAX, POSITIONS "/%u", set);
}

void ky_shm_metadata(char name[KY_SHM_NAME_MAX], uint64_t uuid_hi, uint64_t uuid_lo)
{
	snprintf(name, KY_SHM_NAME_MAX, METADATA "/%016llx%016llx", (unsigned long long)uuid_hi,
		(unsigned long long)uuid_lo);
}

/*
 * Calls remove_it, unless it is NULL, for each entry of a directory below dir. Returns the number
 * of entries, or -errno.
 */
static int walk_dir(int dir, const char *name, void (*remove_it)(int dir, const char *name))
{
	int fd = openat(dir, name, DIR_FLAGS | O_NOFOLLOW), n = 0;
	struct dirent *e;
	DIR *d;

	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		if (remove_it)
			remove_it(dirfd(d), e->d_name);
	}
	closedir(d);
	return n;
}

static bool copies_on_write(const struct statfs *fs)
{
	static const uint32_t types[] = {BTRFS_SUPER_MAGIC, BCACHEFS_SUPER_MAGIC, ZFS_SUPER_MAGIC};

	for (size_t i = 0; i < KY_ARRAY_SIZE(types); i++)
		if ((uint32_t)fs->f_type == types[i])
			return true;
	return false;
}

/*
 * Checks that the directory is for this user alone and can hold memory. Does not change a directory
 * that cannot be used: it may be /dev/shm itself.
 */
static int take_directory(int fd)
{
	struct statfs fs;
	struct stat st;
	int n;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (st.st_uid != geteuid() || (st.st_mode & S_IWOTH))
		return -EPERM;
	if (copies_on_write(&fs))
		return -EOPNOTSUPP;
	n = walk_dir(fd, ".", NULL);
	if (!n && fchmod(fd, 0700) < 0)
		return -errno;
	return n > 0 ? -ENOTEMPTY : n;
}

int ky_shm_dir_make(const char *path, int *ret_fd)
{
	bool made = !mkdir(path, 0700);
	int fd, ret;

	if (!made && errno != EEXIST)
		return -errno;
	fd = open(path, DIR_FLAGS | O_NOFOLLOW);
	ret = fd < 0 ? -errno : take_directory(fd);
	for (size_t i = 0; !ret && i < KY_ARRAY_SIZE(folders); i++)
		ret = mkdirat(fd, folders[i], 0700) < 0 ? -errno : 0;
	if (!ret) {
		*ret_fd = fd;
		return 0;
	}
	ky_close(fd);
	if (made)
		rmdir(path);
	return ret;
}

int ky_shm_dir_open(const char *path, int *ret_fd)
{
	int fd = open(path, DIR_FLAGS);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int ky_shm_count_buffers(int dir)
{
	return walk_dir(dir, BUFFERS, NULL);
}

/* The folder that a name begins with is opened on its own: it might be a link as well. */
int ky_shm_open(int dir, const char *name, int flags)
{
	const char *slash = strchr(name, '/');
	int folder = -1, fd, ret = 0;
	char first[KY_SHM_NAME_MAX];
	struct stat st;

	if (slash) {
		snprintf(first, sizeof(first), "%.*s", (int)(slash - name), name);
		folder = openat(dir, first, DIR_FLAGS | O_NOFOLLOW);
		if (folder < 0)
			return -errno;
	}
	fd = openat(slash ? folder : dir, slash ? slash + 1 : name,
		flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = -EBADMSG;
	ky_close(folder);
	if (!ret)
		return fd;
	ky_close(fd);
	return ret;
}

static void remove_file(int dir, const char *name)
{
	unlinkat(dir, name, 0);
}

void ky_shm_dir_empty(int fd)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(folders); i++) {
		walk_dir(fd, folders[i], remove_file);
		unlinkat(fd, folders[i], AT_REMOVEDIR);
	}
	remove_file(fd, KY_SHM_MEMORY);
	remove_file(fd, KY_SHM_SESSION);
}

void ky_shm_dir_remove(const char *path, int fd)
{
	ky_shm_dir_empty(fd);
	rmdir(path);
}
