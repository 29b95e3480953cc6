/* SPDX-License-Identifier: MIT */
#include "consumerd/sink/trace-dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "ctf/watermark.h"
#include "svc/tree.h"

#define NAME_MAX_BYTES 220 /* leaves room for "_65535_18446744073709551615.kyx" */
#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define DISCARDED      ".cleared"

/* The directories of a chunk, and where they are while it is moved. Each may be missing. */
static const struct part {
	const char *name, *moving;
} parts[] = {{"ust", KY_MOVING_NAME "/ust"}, {"kernel", KY_MOVING_NAME "/kernel"}};

bool trace_dir_name_valid(const char *name)
{
	return *name && *name != '.' && strlen(name) <= NAME_MAX_BYTES && !strchr(name, '/');
}

/* 0 when the open directory has no entries but "." and ".."; else -ENOTEMPTY. */
static int check_empty(int fd)
{
	int copy = openat(fd, ".", DIR_FLAGS), ret = 0;
	struct dirent *e;
	DIR *dir;

	if (copy < 0)
		return -errno;
	dir = fdopendir(copy);
	if (!dir) {
		ret = -errno;
		close(copy);
		return ret;
	}
	while (!ret && (e = readdir(dir)))
		ret = strcmp(e->d_name, ".") && strcmp(e->d_name, "..") ? -ENOTEMPTY : 0;
	closedir(dir);
	return ret;
}

/* mkdir -p for all but the last component of an absolute path. */
static int make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int ret;

		*slash = '\0';
		ret = mkdir(path, 0777) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (ret < 0)
			return ret;
	}
	return 0;
}

/*
 * Checks an existing directory. Another user, who owns it, could move away what is written into it.
 */
static int check_usable(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == geteuid() ? check_empty(fd) : -EXDEV;
}

/* Readers of the trace see by this lock that it is being recorded. Not all file systems have it. */
static void lock_while_recording(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	fcntl(fd, F_OFD_SETLK, &lock);
}

bool trace_dir_claim(int fd)
{
	return !flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK;
}

int trace_dir_make(const char *path, bool resume, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	char copy[PATH_MAX];
	size_t len = strlen(path);
	bool made;
	int ret;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (path[0] != '/' || len < 2)
		return -EINVAL;
	if (len >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, path, len);
	copy[len] = '\0';
	ret = make_parents(copy);
	if (ret < 0)
		return ret;
	made = !mkdir(copy, 0750);
	if (!made && errno != EEXIST)
		return -errno;
	fd = open(copy, DIR_FLAGS | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	ret = resume || made ? 0 : check_usable(fd);
	if (ret < 0)
		return ret;
	lock_while_recording(fd);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int open_dir(int dir, const char *name, bool create)
{
	int fd;

	if (create && mkdirat(dir, name, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, DIR_FLAGS | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Opens (or makes) the directory `name` in dir. */
static int open_component(int dir, const char *name, bool create)
{
	return trace_dir_name_valid(name) ? open_dir(dir, name, create) : -EINVAL;
}

int trace_dir_open_below(int root, const char *path, bool create, int *ret_fd)
{
	char copy[PATH_MAX], *rest = copy, *name;
	int fd = -1, next;

	if (strlen(path) >= sizeof(copy))
		return -ENAMETOOLONG;
	strcpy(copy, path);
	while ((name = strsep(&rest, "/"))) {
		next = open_component(fd < 0 ? root : fd, name, create);
		ky_close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	*ret_fd = fd;
	return 0;
}

int trace_dir_open_file(int dir, const char *name, int flags, int *ret_fd)
{
	int fd = openat(dir, name, flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0640);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Returns false for a path that cannot be looked at, too. */
static bool is_missing(int dir, const char *path)
{
	return faccessat(dir, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

bool trace_dir_in_chunk(const char *path)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++) {
		size_t n = strlen(parts[i].name);

		if (!strncmp(path, parts[i].name, n) && (path[n] == '/' || !path[n]))
			return true;
	}
	return false;
}

/* Moves the parts that `from` has to `to`. Returns the first error, and continues after it. */
static int move_parts(int from, int to)
{
	int ret = 0;

	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++)
		if (renameat(from, parts[i].name, to, parts[i].name) < 0 && errno != ENOENT && !ret)
			ret = -errno;
	return ret;
}

int trace_dir_undo_move(int root)
{
	int moving = openat(root, KY_MOVING_NAME, DIR_FLAGS | O_NOFOLLOW), ret;

	if (moving < 0)
		return errno == ENOENT ? 0 : -errno;
	ret = move_parts(moving, root);
	close(moving);
	if (!ret && unlinkat(root, KY_MOVING_NAME, AT_REMOVEDIR) < 0)
		ret = -errno;
	return ret;
}

bool trace_dir_has_chunk(int root)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(parts); i++)
		if (!is_missing(root, parts[i].name) || !is_missing(root, parts[i].moving))
			return true;
	return false;
}

/*
 * Moves the chunk to ROOT/.moving, and that to dir/name: the second is the one step. If it fails,
 * the first is undone, by this call or the next one that needs the chunk (trace_dir_undo_move).
 */
static int move_chunk(int root, int dir, const char *name)
{
	int ret = trace_dir_undo_move(root), moving;

	if (ret < 0)
		return ret;
	moving = open_dir(root, KY_MOVING_NAME, true);
	if (moving < 0)
		return moving;
	ret = move_parts(root, moving);
	close(moving);
	if (!ret && renameat(root, KY_MOVING_NAME, dir, name) < 0)
		ret = -errno;
	if (ret < 0)
		trace_dir_undo_move(root);
	return ret;
}

int trace_dir_archive(int root, const char *archive)
{
	_cleanup_close_ int archives = -1;

	if (!trace_dir_has_chunk(root))
		return -ENOENT;
	archives = open_component(root, "archives", true);
	return archives < 0 ? archives : move_chunk(root, archives, archive);
}

int trace_dir_discard(int root)
{
	return ky_tree_remove(root, DISCARDED);
}

int trace_dir_set_aside(int root)
{
	int ret = trace_dir_discard(root);

	if (!ret && !trace_dir_has_chunk(root))
		ret = -ENOENT;
	return ret < 0 ? ret : move_chunk(root, root, DISCARDED);
}
