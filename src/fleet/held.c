/* SPDX-License-Identifier: MIT */
#include "fleet/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ship/files.h"
#include "svc/tree.h"

#define NEW_REPORT "report.new"
#define REPORT_MAX (1u << 20)
#define NS_PER_S   1000000000
#define STEP_S	   1 /* less is the adjustment of NTP */

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
	const char *traces = ky_env("KYMO_HOME"), *home = ky_env("HOME");
	int n;

	if (*c->hold)
		n = snprintf(h->path, sizeof(h->path), "%s/%s", c->hold, c->name);
	else if (traces)
		n = snprintf(h->path, sizeof(h->path), "%s/.fleet/%s", traces, c->name);
	else
		n = snprintf(h->path, sizeof(h->path), "%s/kymo-traces/.fleet/%s", home ? home : "",
			c->name);
	if (n < 0 || (size_t)n >= sizeof(h->path))
		return -ENAMETOOLONG;
	return h->path[0] == '/' ? 0 : -EINVAL;
}

static int64_t wall_s(void)
{
	return (int64_t)(ky_clock_ns(CLOCK_REALTIME) / NS_PER_S);
}

/* Returns by how much the wall clock is ahead of the one that nobody sets. */
static int64_t wall_ahead_s(void)
{
	return wall_s() - (int64_t)(ky_clock_ns(CLOCK_BOOTTIME) / NS_PER_S);
}

int held_open(struct held *h, const struct fleet_config *c, char *why, size_t size)
{
	int r;

	*h = (struct held){.dir = -1,
		.max_bytes = c->hold_size,
		.max_us = c->hold_us,
		.ahead_s = wall_ahead_s()};
	r = choose_path(h, c);
	if (!r)
		r = make_dirs(h->path);
	if (!r) {
		h->dir = open(h->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = h->dir < 0 ? -errno : 0;
	}
	/* Two agents would take a snapshot into the same directory. */
	if (!r && flock(h->dir, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		snprintf(
			why, size, "another kymo-agent of host '%s' runs on this machine", c->name);
		return -EBUSY;
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

int held_remove(const struct held *h, const char *id)
{
	return ky_tree_remove(h->dir, id);
}

static int write_file(const struct held *h, const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(
		h->dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : files_write(fd, text, strlen(text), 0);

	return !r && fsync(fd) < 0 ? -errno : r;
}

int held_set_shipped(const struct held *h, const char *id)
{
	char path[PATH_MAX];

	path_of(path, id, HELD_SHIPPED);
	return write_file(h, path, "");
}

int held_complete(const struct held *h, const char *id, const struct kymo_value *report)
{
	char fresh[PATH_MAX], path[PATH_MAX];
	int r;

	path_of(fresh, id, NEW_REPORT);
	path_of(path, id, HELD_REPORT);
	r = write_file(h, fresh, kymo_value_json(report));
	if (!r && !kymo_value_bool(kymo_value_get(report, "ships")))
		r = held_set_shipped(h, id);
	return !r && renameat(h->dir, fresh, h->dir, path) < 0 ? -errno : r;
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

int held_get_again(const struct held *h, const char *id, char request[FLEET_ID_MAX + 1])
{
	char path[PATH_MAX];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	request[0] = '\0';
	path_of(path, id, HELD_AGAIN);
	fd = openat(h->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = read(fd, request, FLEET_ID_MAX);
	if (n < 0)
		return -errno;
	request[n] = '\0';
	return 0;
}

static bool is_due(const struct held *h, const char *id)
{
	return is_there(h, id, HELD_REPORT) && !is_there(h, id, HELD_SHIPPED);
}

/* Calls fn for each snapshot, until it returns other than 0. Returns that, or 0. */
static int held_each(const struct held *h, int (*fn)(void *arg, const char *id), void *arg)
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

struct turn {
	const struct held *h;
	const char *after;
	char id[FLEET_ID_MAX + 1]; /* "": none */
};

/* Returns whether one comes before the other, counted from behind `after`. */
static bool is_sooner(const char *id, const char *other, const char *after)
{
	const bool is_behind = strcmp(id, after) > 0, other_is_behind = strcmp(other, after) > 0;

	return is_behind != other_is_behind ? is_behind : strcmp(id, other) < 0;
}

static int choose_next(void *arg, const char *id)
{
	struct turn *t = arg;

	if (is_due(t->h, id) && (!*t->id || is_sooner(id, t->id, t->after)))
		snprintf(t->id, sizeof(t->id), "%s", id);
	return 0;
}

bool held_next_due(const struct held *h, const char *after, char ret_id[FLEET_ID_MAX + 1])
{
	struct turn t = {.h = h, .after = after};

	held_each(h, choose_next, &t);
	memcpy(ret_id, t.id, sizeof(t.id));
	return *t.id;
}

struct oldest {
	const struct held *h;
	struct timespec made;
	char id[FLEET_ID_MAX + 1]; /* "": none */
};

static bool is_before(struct timespec a, struct timespec b)
{
	return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/*
 * Chooses among those that need not be shipped. They include those without a report, of an agent
 * that ended before they were complete: nobody can use these.
 */
static int choose_oldest(void *arg, const char *id)
{
	struct oldest *o = arg;
	struct stat st;

	if (!is_due(o->h, id) && !fstatat(o->h->dir, id, &st, AT_SYMLINK_NOFOLLOW) &&
		(!*o->id || is_before(st.st_mtim, o->made))) {
		o->made = st.st_mtim;
		snprintf(o->id, sizeof(o->id), "%s", id);
	}
	return 0;
}

int held_make(const struct held *h, const char *id)
{
	int ret = held_remove(h, id);

	while (!ret && ky_tree_bytes(h->dir, ".") >= h->max_bytes) {
		struct oldest o = {.h = h};

		held_each(h, choose_oldest, &o);
		ret = *o.id ? held_remove(h, o.id) : -EDQUOT;
	}
	if (!ret && mkdirat(h->dir, id, 0700) < 0)
		ret = -errno;
	return ret;
}

struct step {
	const struct held *h;
	int64_t by_s;
};

/* A time that was in the future before the step is left as it is. */
static int move_time(void *arg, const char *id)
{
	const struct step *step = arg;
	const int dir = step->h->dir;
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	struct stat st;

	if (fstatat(dir, id, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		st.st_mtime > wall_s() - step->by_s + STEP_S)
		return 0;
	times[1] = st.st_mtim;
	times[1].tv_sec += step->by_s;
	utimensat(dir, id, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* A clock that is set makes no snapshot older: the times of those that are held move with it. */
static void follow_clock(struct held *h)
{
	const int64_t ahead_s = wall_ahead_s();
	struct step step = {.h = h, .by_s = ahead_s - h->ahead_s};

	h->ahead_s = ahead_s;
	if (step.by_s > STEP_S || step.by_s < -STEP_S)
		held_each(h, move_time, &step);
}

static int expire_one(void *arg, const char *id)
{
	const struct held *h = arg;
	struct stat st;

	if (!fstatat(h->dir, id, &st, AT_SYMLINK_NOFOLLOW) &&
		(uint64_t)KY_MAX(wall_s() - st.st_mtime, (int64_t)0) * 1000000 > h->max_us)
		held_remove(h, id);
	return 0;
}

void held_expire(struct held *h)
{
	follow_clock(h);
	held_each(h, expire_one, h);
}
