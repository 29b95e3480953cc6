/* SPDX-License-Identifier: MIT */
/*
 * Control groups of running containers: kymo_cgroup:container and, last, :containers, in a state
 * dump. A container runs if a process is in its control group. So the collector reads each
 * process's control group, which needs no knowledge of the mounts of control groups and their
 * versions.
 */
#include <kymo/tracepoint.h>

#include "base/list.h"
#include "collectd/container.h"
#include "collectd/process.h"
#include "collectd/provider.h"
#include "collectd/text.h"

struct group {
	struct ky_list node;
	struct container container;
	char path[CGROUP_MAX];
	pid_t pid; /* the process with the lowest number in it */
	uint32_t n_processes;
};

static struct group *find_group(const struct ky_list *groups, const char *path)
{
	struct group *g;

	ky_list_foreach (g, groups, node)
		if (!strcmp(g->path, path))
			return g;
	return NULL;
}

static struct group *add_cgroup(
	struct ky_list *groups, const struct container *c, const char *path, pid_t pid)
{
	struct group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->container = *c;
	g->pid = pid;
	strcpy(g->path, path);
	ky_list_append(groups, &g->node);
	return g;
}

static void look_at_process(pid_t pid, void *groups)
{
	char path[CGROUP_MAX];
	struct container c;
	struct group *g;

	process_cgroup(pid, path);
	if (!container_of_path(&c, path))
		return;
	path[c.path_len] = '\0';
	g = find_group(groups, path);
	if (!g)
		g = add_cgroup(groups, &c, path, pid);
	if (g)
		g->n_processes++;
}

static void record_state(void)
{
	struct ky_list groups = KY_LIST_INIT(groups);
	struct group *g, *tmp;
	uint32_t n = 0;

	if (!kymo_event_enabled(kymo_cgroup, container) &&
		!kymo_event_enabled(kymo_cgroup, containers))
		return;
	text_each_number("/proc", look_at_process, &groups);
	ky_list_foreach_safe (g, tmp, &groups, node) {
		kymo_event(kymo_cgroup, container, kymo_string(id, g->container.id),
			kymo_string(runtime, g->container.runtime), kymo_string(path, g->path),
			kymo_i32(pid, g->pid), kymo_u32(n_processes, g->n_processes));
		n++;
		free(g);
	}
	kymo_event(kymo_cgroup, containers, kymo_u32(n, n));
}

const struct provider cgroup_provider = {.name = "cgroup", .record_state = record_state};
