/* SPDX-License-Identifier: MIT */
#include "fleet/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <sys/stat.h>
#include <time.h>

#include "svc/tree.h"

#define NEW_REPORT "report.new"
#define REPORT_MAX (1u << 20)

static int make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* As sessions' traces: below KYMO_HOME, or in the user's home. */
static int choose_path(struct held *h, const struct fleet_config *c)
{
	const char *traces = getenv("KYMO_HOME"), *home = getenv("HOME");
	int n;

	if (*c->hold)
		n = snprintf(h->path, sizeof(h->path), "%s/%s", c->hold, c->name);
	else if (traces && *traces)
		n = snprintf(h->path, sizeof(h->path), "%s/.fleet/%s", traces, c->name);
	else
		n = snprintf(h->path, sizeof(h->path), "%s/kymo-traces/.fleet/%s", home ? home : "",
			c->name);
	if (n < 0 || (size_t)n >= sizeof(h->path))
		return -ENAMETOOLONG;
	return h->path[0] == '/' ? 0 : -EINVAL;
}

int held_open(struct held *h, const struct fleet_config *c, char *why, size_t size)
{
	int r;

	*h = (struct held){.dir = -1, .max_bytes = c->hold_size, .max_us = c->hold_us};
	r = choose_path(h, c);
	if (!r)
		r = make_dirs(h->path);
	if (!r) {
		h->dir = open(h->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = h->dir < 0 ? -errno : 0;
	}
	if (r < 0)
		snprintf(why, size, "cannot keep snapshots in '%s': %s", h->path, strerror(-r));
	return r;
}

static void path_of(char path[PATH_MAX], const char *id, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", id, name);
}

static bool is_there(const struct held *h, const char *id, const char *name)
{
	char path[PATH_MAX];

	path_of(path, id, name);
	return !faccessat(h->dir, path, F_OK, 0);
}

struct kymo_value *held_report(const struct held *h, const char *id)
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat st;
	struct json_object *o;

	path_of(path, id, HELD_REPORT);
	fd = openat(h->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > (off_t)REPORT_MAX)
		return NULL;
	o = json_object_from_fd(fd);
	if (json_object_is_type(o, json_type_object))
		return (struct kymo_value *)o;
	json_object_put(o);
	return NULL;
}

int held_make(const struct held *h, const char *id)
{
	held_remove(h, id);
	if (ky_tree_bytes(h->dir, ".") >= h->max_bytes)
		return -EDQUOT;
	return mkdirat(h->dir, id, 0700) < 0 ? -errno : 0;
}

void held_remove(const struct held *h, const char *id)
{
	ky_tree_remove(h->dir, id);
}

static int write_file(const struct held *h, const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(
		h->dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	const size_t n = strlen(text);

	if (fd < 0)
		return -errno;
	return write(fd, text, n) == (ssize_t)n && !fsync(fd) ? 0 : -EIO;
}

int held_complete(const struct held *h, const char *id, const struct kymo_value *report)
{
	char fresh[PATH_MAX], path[PATH_MAX];
	int r;

	path_of(fresh, id, NEW_REPORT);
	path_of(path, id, HELD_REPORT);
	r = write_file(h, fresh, kymo_value_json(report));
	return !r && renameat(h->dir, fresh, h->dir, path) < 0 ? -errno : r;
}

int held_set_shipped(const struct held *h, const char *id)
{
	char path[PATH_MAX];

	path_of(path, id, HELD_SHIPPED);
	return write_file(h, path, "");
}

/* The request is there before the mark is removed: the agent may be killed between the two. */
int held_set_again(const struct held *h, const char *id, const char *request)
{
	char path[PATH_MAX];
	int r;

	if (!is_there(h, id, HELD_SHIPPED))
		return 0;
	path_of(path, id, HELD_AGAIN);
	r = write_file(h, path, request);
	if (r < 0)
		return r;
	path_of(path, id, HELD_SHIPPED);
	return unlinkat(h->dir, path, 0) < 0 ? -errno : 0;
}

void held_get_again(const struct held *h, const char *id, char request[FLEET_ID_MAX + 1])
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	path_of(path, id, HELD_AGAIN);
	fd = openat(h->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, request, FLEET_ID_MAX);
	request[KY_MAX(n, (ssize_t)0)] = '\0';
}

bool held_is_due(const struct held *h, const char *id)
{
	struct kymo_value *report = is_there(h, id, HELD_SHIPPED) ? NULL : held_report(h, id);
	const bool due = kymo_value_bool(kymo_value_get(report, "ships"));

	kymo_value_free(report);
	return due;
}

int held_each(const struct held *h, int (*fn)(void *arg, const char *id), void *arg)
{
	int fd = openat(h->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d)
		ky_close(fd);
	while (d && !r && (e = readdir(d)))
		if (link_id_valid(e->d_name))
			r = fn(arg, e->d_name);
	if (d)
		closedir(d);
	return r;
}

static int expire_one(void *arg, const char *id)
{
	const struct held *h = arg;
	struct stat st;

	if (!fstatat(h->dir, id, &st, AT_SYMLINK_NOFOLLOW) &&
		(uint64_t)KY_MAX(time(NULL) - st.st_mtime, (time_t)0) * 1000000 > h->max_us)
		held_remove(h, id);
	return 0;
}

void held_expire(const struct held *h)
{
	held_each(h, expire_one, (void *)h);
}
