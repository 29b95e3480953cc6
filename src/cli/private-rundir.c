/* SPDX-License-Identifier: MIT */
#include "cli/private-rundir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "abi/state.h"

#define PREFIX	    "kymo-record-"
#define RANDOM	    "XXXXXX"
#define ROOTS_MODE  0711
#define AGENTS	    ".lttng" /* docs/agents.md */
#define AGENTS_FILE AGENTS "/agent.port"
#define DIR_FLAGS   (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The longest path that leaves room for a socket's name behind it. */
#define PATH_LEN_MAX                                                                               \
	(sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof("/" KY_RUN_CONTROL) - 8)

/*
 * Names that may be there. KY_RUN_SESSIONS and AGENTS are directories, and empty except for
 * AGENTS_FILE.
 */
static const char *const names[] = {KY_RUN_APP, KY_RUN_CONTROL, KY_RUN_DRAIN, KY_RUN_STATE,
	KY_RUN_WAKE, KY_RUN_LOCK, PRIVATE_RUNDIR_LOG, KY_RUN_SESSIONS, AGENTS};

static bool is_ours(const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Returns true if nothing else is there. A user's directory may have a name like ours. */
static bool has_only_ours(int fd)
{
	int copy = openat(fd, ".", DIR_FLAGS);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	bool only = dir;

	while (only && (e = readdir(dir)))
		only = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || is_ours(e->d_name);
	if (dir)
		closedir(dir);
	else
		ky_close(copy);
	return only;
}

static bool has_daemon(int dir)
{
	int fd = openat(dir, KY_RUN_LOCK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool has = fd < 0 ? errno != ENOENT : flock(fd, LOCK_EX | LOCK_NB) < 0;

	ky_close(fd);
	return has;
}

static bool is_abandoned(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_uid == geteuid() &&
	       ((st.st_mode & 0777) == 0700 || (st.st_mode & 0777) == ROOTS_MODE) &&
	       !flock(fd, LOCK_EX | LOCK_NB) && !has_daemon(fd) && has_only_ours(fd);
}

static void remove_contents(int fd)
{
	unlinkat(fd, AGENTS_FILE, 0);
	for (size_t i = 0; i < KY_ARRAY_SIZE(names); i++)
		if (unlinkat(fd, names[i], 0) < 0 && errno == EISDIR)
			unlinkat(fd, names[i], AT_REMOVEDIR);
}

static void sweep_up(int parent, const char *name)
{
	int fd = openat(parent, name, DIR_FLAGS);

	if (fd >= 0 && is_abandoned(fd)) {
		remove_contents(fd);
		unlinkat(parent, name, AT_REMOVEDIR);
	}
	ky_close(fd);
}

/* Removes dead directories below path, which may have many other entries. */
static void sweep(const char *path)
{
	DIR *parent = opendir(path);
	struct dirent *e;

	while (parent && (e = readdir(parent)))
		if (!strncmp(e->d_name, PREFIX, strlen(PREFIX)) &&
			strlen(e->d_name) == strlen(PREFIX RANDOM))
			sweep_up(dirfd(parent), e->d_name);
	if (parent)
		closedir(parent);
}

static bool is_there(const struct private_rundir *r)
{
	struct stat there, ours;

	return !lstat(r->path, &there) && !fstat(r->fd, &ours) && there.st_dev == ours.st_dev &&
	       there.st_ino == ours.st_ino;
}

/* Locks the directory if the file system can. -ESTALE: another process is removing it. */
static int keep_directory(struct private_rundir *r)
{
	bool swept;

	r->fd = open(r->path, DIR_FLAGS);
	if (r->fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	swept = (flock(r->fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) || !is_there(r);
	if (!swept)
		return 0;
	r->fd = ky_close(r->fd);
	return -ESTALE;
}

static int make_in(struct private_rundir *r, const char *parent)
{
	int n = snprintf(r->path, sizeof(r->path), "%s/" PREFIX RANDOM, parent), ret;

	if (n < 0 || (size_t)n > PATH_LEN_MAX)
		return -ENAMETOOLONG;
	if (!mkdtemp(r->path))
		return -errno;
	ret = keep_directory(r);
	if (!ret && geteuid() == 0)
		ret = fchmod(r->fd, ROOTS_MODE) < 0 ? -errno : 0;
	if (ret < 0) {
		rmdir(r->path);
		r->fd = ky_close(r->fd);
	}
	return ret;
}

/* Returns whether programs of all users can get there. */
static bool is_open_to_all(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (size_t n = strcspn(path + 1, "/") + 1;; n += strcspn(path + n + 1, "/") + 1) {
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (stat(part, &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
		if (!path[n])
			return true;
	}
}

#define N_PARENTS 3u

const char *private_rundir_parent(size_t i)
{
	switch (i) {
	case 0:
		return getenv("XDG_RUNTIME_DIR") ?: "";
	case 1:
		return getenv("TMPDIR") ?: "";
	default:
		return i < N_PARENTS ? "/tmp" : NULL;
	}
}

int private_rundir_make(struct private_rundir *r)
{
	int ret = 0;

	for (size_t i = 0; i < 2 * N_PARENTS; i++) {
		const char *parent = private_rundir_parent(i % N_PARENTS);

		if (*parent != '/')
			continue;
		if (geteuid() == 0 && i < N_PARENTS && !is_open_to_all(parent))
			continue;
		sweep(parent);
		do
			ret = make_in(r, parent);
		while (ret == -ESTALE);
		if (!ret)
			return 0;
	}
	*r = (struct private_rundir){.fd = -1};
	return ret;
}

void private_rundir_remove(struct private_rundir *r)
{
	if (!*r->path)
		return;
	remove_contents(r->fd);
	rmdir(r->path);
	ky_close(r->fd);
	*r = (struct private_rundir){.fd = -1};
}
