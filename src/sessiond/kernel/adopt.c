/* SPDX-License-Identifier: MIT */
/* Taking over the kernel channels of a predecessor's session, from its consumer. */
#include <sys/stat.h>

#include "abi/kernel.h"
#include "kernel/format.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/kernel/probes.h"
#include "svc/log.h"

static int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static bool is_file(int fd, uint64_t number)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == number;
}

static int find_probes(struct kernel_set *set)
{
	const struct tracefs *t = &set->channel->session->env->kernel->fs;
	const struct rule *r;
	int ret = 0;

	ky_list_foreach (r, &set->channel->rules, node)
		if (r->probe && !ret) {
			ret = probes_find(t, set->main.name, r->probe, &set->probes);
			ret = ret ? ret : probes_note_files(&set->probe_files, r->probe);
		}
	return ret;
}

static void describe_events(struct kernel_set *set)
{
	struct kernel_event *e, *tmp;
	int ret;

	ky_list_foreach_safe (e, tmp, &set->events, node) {
		ret = kernel_event_read(set, e);
		if (ret < 0) {
			ky_error("cannot take over the kernel event %s:%s: %s", e->system, e->name,
				strerror(-ret));
			kernel_event_free(e);
		}
	}
}

/* Gives up what was taken over only in part: kernel_settle() drops the set. */
static void give_up_set(struct kernel_set *set)
{
	instance_silence(&set->main);
	instance_close(&set->main);
	instance_close(&set->tasks);
}

/* Returns the number of the last state dump: the consumer takes a repeated one for known. */
static uint32_t last_dump(const struct kernel_set *set)
{
	const uint64_t size = ky_kernel_cpu_size(set->main.subbuf_size);
	struct ky_kernel_cpu cpu;
	uint64_t last = 0;

	for (uint32_t i = 0; i < set->main.n_cpus; i++)
		if (pread(set->memory_fd, &cpu, sizeof(cpu), (off_t)(i * size)) == sizeof(cpu))
			last = KY_MAX(last, KY_MAX(cpu.slots[0].dump, cpu.slots[1].dump));
	return (uint32_t)(last >> 32);
}

int kernel_set_adopt(struct kernel_set *set, int fds[4])
{
	struct env *env = set->channel->session->env;
	struct registry *r = set->registry;
	char why[KERNEL_WHY_MAX];
	int ret = tracefs_open(&env->kernel->fs, why);

	if (ret < 0)
		return ret;
	if (set->main.dir >= 0 || !r || !is_file(fds[0], set->memory_file))
		return -EBADMSG;
	if (r->log_fd < 0)
		r->log_fd = log_memory_adopt(set->channel->session->shm_fd, fds[1], r->log_file);
	if (r->log_fd < 0)
		return r->log_fd;
	set->memory_fd = take_fd(&fds[0]);
	set->main.free_buffer = take_fd(&fds[2]);
	set->main.dir = take_fd(&fds[3]);
	ret = instances_reopen(&set->main, &set->tasks, &env->kernel->fs, env->n_cpus);
	if (!ret) {
		set->n_dumps = last_dump(set);
		ret = kernel_set_follow(set);
	}
	if (!ret)
		ret = find_probes(set);
	if (ret < 0) {
		give_up_set(set);
		return ret;
	}
	describe_events(set);
	set->recording = instance_is_recording(&set->main);
	return 0;
}

int kernel_set_adopt_cpu(struct kernel_set *set, uint32_t cpu, int fds[3])
{
	if (cpu >= set->main.n_cpus || set->main.cpus[cpu].raw >= 0)
		return -EBADMSG;
	set->main.cpus[cpu].raw = take_fd(&fds[0]);
	set->main.cpus[cpu].stats = take_fd(&fds[1]);
	set->tasks.cpus[cpu].raw = take_fd(&fds[2]);
	return 0;
}

/*
 * The predecessor may have been killed between its journal's entry and the change in the kernel.
 * The filter is written again.
 */
static void find_state(const struct kernel_set *set, struct kernel_event *e)
{
	_cleanup_free_ char *text = NULL;
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "events/%s/%s/enable", e->system, e->name);
	text = tracefs_read(set->main.dir, path);
	e->enabled = text && *text == '1';
	e->changed = true;
}

void kernel_settle(struct session *s)
{
	char why[KERNEL_WHY_MAX];
	struct kernel_event *e;
	struct channel *c;

	ky_list_foreach (c, &s->channels, node) {
		if (!c->kernel)
			continue;
		if (c->kernel->main.dir < 0) {
			session_notice(s,
				"channel '%s': the session daemon could not take over its buffers from the predecessor: it records no more events: enable them in another channel",
				c->name);
			kernel_set_drop(c);
			continue;
		}
		c->kernel->may_map = instance_can_map(&c->kernel->main);
		if (c->kernel->recording)
			tracker_copy(&c->kernel->tracked, &s->trackers[TRACK_PID]);
		if (kernel_events_update(c, why) < 0 || kernel_events_renew(c->kernel, why) < 0)
			session_notice(s, "channel '%s': %s", c->name, why);
		ky_list_foreach (e, &c->kernel->events, node)
			find_state(c->kernel, e);
		kernel_channel_apply(c);
	}
}
