/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/sweep.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/file.h>

#include "sessiond/kernel/removal.h"

#define OURS "kymo-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]-*"

/* Returns whether `name` serves another instance; then *ret_length is the length of that's name. */
static bool serves_other(const char *name, size_t *ret_length)
{
	size_t n = strlen(name), suffix = strlen(INSTANCE_TASKS);

	*ret_length = n;
	if (n < suffix || strcmp(name + n - suffix, INSTANCE_TASKS) != 0)
		return false;
	*ret_length = n - suffix;
	return true;
}

/*
 * Locks the directory of the instance, or of the one that it serves, so that nobody else takes it
 * meanwhile. Returns its descriptor; -EWOULDBLOCK if the process that made it, or a consumer of it,
 * lives; or -ENOENT.
 */
static int lock_dead(int instances, const char *name)
{
	char other[INSTANCE_MAX];
	size_t length;
	int fd, ret;

	serves_other(name, &length);
	snprintf(other, sizeof(other), "%.*s", (int)KY_MIN(length, sizeof(other) - 1), name);
	fd = tracefs_open_dir(instances, other);
	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	ret = -errno;
	ky_close(fd);
	return ret;
}

/* Opens an instance that may not exist. */
static void open_instance(struct instance *i, int instances, const char *name)
{
	instance_init(i);
	i->dir = tracefs_open_dir(instances, name);
	if (i->dir >= 0)
		snprintf(i->name, sizeof(i->name), "%s", name);
	else
		i->dir = -1;
}

/*
 * Lets an instance of a dead daemon be removed, with the one that serves it. It stays locked until
 * then. Returns the number of the two.
 */
static int sweep_if_dead(struct kernel *k, int instances, const char *name)
{
	char served_by[INSTANCE_MAX];
	int lock = lock_dead(instances, name), n;
	struct instance main, tasks;
	size_t length;

	instance_init(&main);
	if (serves_other(name, &length) ? lock != -ENOENT : lock < 0) {
		ky_close(lock);
		return 0;
	}
	if (lock >= 0) {
		main.dir = lock;
		snprintf(main.name, sizeof(main.name), "%s", name);
		snprintf(served_by, sizeof(served_by), "%.40s" INSTANCE_TASKS, name);
		open_instance(&tasks, instances, served_by);
	} else {
		open_instance(&tasks, instances, name);
	}
	n = !!*main.name + !!*tasks.name;
	removal_add(k, &main, &tasks);
	return n;
}

static int is_ours(const struct dirent *entry)
{
	return !fnmatch(OURS, entry->d_name, 0);
}

/* Reads the names first: an open directory would be changed below its reader. */
int tracefs_sweep(struct kernel *k)
{
	int instances = tracefs_open_dir(k->fs.root, "instances"), n_dead = 0, n;
	struct dirent **names;

	if (instances < 0)
		return instances;
	n = scandirat(instances, ".", &names, is_ours, alphasort);
	for (int i = 0; i < n; i++) {
		if (strlen(names[i]->d_name) < INSTANCE_MAX)
			n_dead += sweep_if_dead(k, instances, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	removal_add_orphans(k, instances);
	ky_close(instances);
	return n_dead;
}
