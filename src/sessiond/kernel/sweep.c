/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/sweep.h"

#include <dirent.h>
#include <fnmatch.h>
#include <sys/file.h>

#include "sessiond/kernel/instance.h"
#include "sessiond/kernel/probes.h"

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

static bool sweep_instance(const struct tracefs *t, int instances, const char *name)
{
	int fd = tracefs_open_dir(instances, name);
	size_t length;

	if (fd < 0)
		return false;
	tracefs_write(fd, "tracing_on", "0");
	tracefs_write(fd, "events/enable", "0");
	ky_close(fd);
	if (!serves_other(name, &length))
		probes_remove_group(t, name);
	return !instance_remove_name(t, name);
}

static bool sweep_if_dead(const struct tracefs *t, int instances, const char *name)
{
	int lock = lock_dead(instances, name);
	bool removed = lock != -EWOULDBLOCK && sweep_instance(t, instances, name);

	ky_close(lock);
	return removed;
}

static int is_ours(const struct dirent *entry)
{
	return !fnmatch(OURS, entry->d_name, 0);
}

/* Reads the names first: an open directory would be changed below its reader. */
int tracefs_sweep(const struct tracefs *t)
{
	int instances = tracefs_open_dir(t->root, "instances"), n_removed = 0, n;
	struct dirent **names;

	if (instances < 0)
		return instances;
	n = scandirat(instances, ".", &names, is_ours, alphasort);
	for (int i = 0; i < n; i++) {
		if (strlen(names[i]->d_name) < INSTANCE_MAX)
			n_removed += sweep_if_dead(t, instances, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	probes_sweep(t, instances);
	ky_close(instances);
	return n_removed;
}
