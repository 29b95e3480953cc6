/* SPDX-License-Identifier: MIT */
#include "ship/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "ctf/index.h"
#include "ship/segment.h"

#define DEPTH_MAX 12

struct walk {
	int (*visit)(void *context, const char *path);
	void (*enter)(void *context, int dir);
	void *context;
	char path[PATH_MAX];
};

static bool is_left_out(const char *name)
{
	return name[0] == '.' || !strcmp(name, "archives") || !strcmp(name, "damaged");
}

bool files_is_walked(const char *path, size_t n)
{
	char part[NAME_MAX + 1];
	int depth = 0;

	for (size_t begin = 0, end; begin <= n; begin = end + 1, depth++) {
		for (end = begin; end < n && path[end] != '/'; end++)
			;
		snprintf(part, sizeof(part), "%.*s", (int)(end - begin), path + begin);
		if (is_left_out(part) || depth > DEPTH_MAX)
			return false;
	}
	return true;
}

static int walk_directory(struct walk *w, int parent, const char *name, size_t len, int depth);

static int walk_entry(struct walk *w, int dir, const char *name, size_t len, int depth)
{
	int n = snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", name),
	    ret = 0;
	struct stat st;

	if (n < 0 || (size_t)n >= sizeof(w->path) - len)
		return -ENAMETOOLONG;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
		ret = walk_directory(w, dir, name, len + (size_t)n, depth + 1);
	else if (S_ISREG(st.st_mode))
		ret = w->visit(w->context, w->path);
	w->path[len] = '\0';
	return ret;
}

/* len: of the path of the directory. */
static int walk_directory(struct walk *w, int parent, const char *name, size_t len, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		ret = errno == ENOENT ? 0 : -errno;
		ky_close(fd);
		return ret;
	}
	if (w->enter)
		w->enter(w->context, fd);
	while (!ret && (e = readdir(d)))
		if (!is_left_out(e->d_name))
			ret = walk_entry(w, fd, e->d_name, len, depth);
	closedir(d);
	return ret;
}

int files_walk(int dir, int (*visit)(void *context, const char *path),
	void (*enter)(void *context, int dir), void *context)
{
	struct walk w = {.visit = visit, .enter = enter, .context = context};

	return walk_directory(&w, dir, ".", 0, 0);
}

int files_write(int fd, const void *bytes, size_t n, uint64_t at)
{
	const uint8_t *p = bytes;

	while (n) {
		ssize_t done = pwrite(fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_in_index(const char *path)
{
	static const char dir[] = "index/";
	const size_t n = sizeof(dir) - 1;
	const char *name = last_part(path);

	return name >= path + n && !memcmp(name - n, dir, n) &&
	       (name == path + n || name[-(ptrdiff_t)n - 1] == '/');
}

bool files_is_index(const char *path)
{
	const size_t n = strlen(path);

	return is_in_index(path) && n > 4 && !strcmp(path + n - 4, ".kyx");
}

void files_stream_of(const char *index, char *buf, size_t size)
{
	const char *name = last_part(index);

	snprintf(buf, size, "%.*s%.*s", (int)(name - strlen("index/") - index), index,
		(int)(strlen(name) - strlen(".kyx")), name);
}

bool files_index_of(const char *path, char *buf, size_t size)
{
	const char *name = last_part(path);

	if (is_in_index(path) || !strcmp(name, "metadata"))
		return false;
	snprintf(buf, size, "%.*sindex/%s.kyx", (int)(name - path), path, name);
	return true;
}

int64_t files_indexed(int index, uint64_t size, uint64_t *ret_index)
{
	struct ky_index_entry e;
	struct stat st;
	uint64_t n;
	ssize_t got;

	if (ret_index)
		*ret_index = 0;
	if (fstat(index, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < sizeof(struct ky_index_header))
		return 0;
	n = ((uint64_t)st.st_size - sizeof(struct ky_index_header)) / sizeof(e);
	/* Entries of packets that are not there: of a machine that stopped. */
	for (; n; n--) {
		got = pread(index, &e, sizeof(e), (off_t)ky_index_offset(n - 1));
		if (got != sizeof(e))
			return got < 0 ? -errno : 0;
		if (e.offset <= size && e.size <= size - e.offset)
			break;
	}
	if (ret_index)
		*ret_index = ky_index_offset(n);
	return n ? (int64_t)(e.offset + e.size) : 0;
}

uint64_t files_readable(int metadata, uint64_t from, uint64_t size)
{
	static const char end[] = "\n};\n";
	const size_t len = sizeof(end) - 1;
	char buf[4096];
	uint64_t top = size;

	/* Backwards, in pieces that overlap. */
	while (top >= from + len) {
		const uint64_t at = top - from > sizeof(buf) ? top - sizeof(buf) : from;
		const ssize_t n = pread(metadata, buf, top - at, (off_t)at);
		const char *found = NULL;

		for (ssize_t i = 0; n >= (ssize_t)len && i <= n - (ssize_t)len; i++)
			if (!memcmp(buf + i, end, len))
				found = buf + i;
		if (found)
			return at + (uint64_t)(found - buf) + len;
		if (at == from)
			break;
		top = at + len - 1;
	}
	return from;
}
