/* SPDX-License-Identifier: MIT */
/* Enables and disables the events of a kernel channel in tracefs, as its rules want. */
#include "base/clock.h"
#include "sessiond/kernel/events.h"
#include "sessiond/kernel/probes.h"
#include "svc/log.h"

static int write_event(const struct kernel_set *set, const struct kernel_event *e, const char *file,
	const char *text)
{
	char path[TRACEFS_PATH_MAX];

	snprintf(path, sizeof(path), "events/%s/%s/%s", e->system, e->name, file);
	return tracefs_write(set->main.dir, path, text);
}

/*
 * Writes the kernel's part of the filters. If the kernel refuses it, the consumer decides all,
 * which it can: its part is the whole, unless the kernel's part is exact.
 */
static int apply_filter(const struct kernel_set *set, const struct kernel_event *e)
{
	char message[TRACEFS_WHY_MAX];
	int ret = write_event(set, e, "filter", *e->filter ? e->filter : "0");

	if (!ret || !*e->filter || !e->programs.len)
		return ret;
	tracefs_last_error(&set->channel->session->env->kernel->fs, message, sizeof(message));
	ky_warning("the kernel refuses the filter '%s' of %s:%s: %s", e->filter, e->system, e->name,
		message);
	return write_event(set, e, "filter", "0");
}

static int apply_event(const struct kernel_set *set, struct kernel_event *e)
{
	int ret = 0;

	if (e->wanted && (e->changed || (!e->enabled && *e->filter)))
		ret = apply_filter(set, e);
	if (!ret && e->wanted != e->enabled)
		ret = write_event(set, e, "enable", e->wanted ? "1" : "0");
	if (ret < 0)
		return ret;
	e->changed = false;
	e->enabled = e->wanted;
	return 0;
}

static void report_refusal(const struct kernel_set *set, const struct kernel_event *e, int error)
{
	if (error == -ENOENT && set->probes && probes_is_of(set->probes, e->name))
		session_notice(set->channel->session,
			"channel '%s': another program has removed probe '%s' from the kernel: enable a probe with another name",
			set->channel->name, e->name);
	else
		session_notice(set->channel->session, "the kernel refuses to record %s:%s: %s",
			e->system, e->name, strerror(-error));
}

void kernel_events_apply(struct kernel_set *set)
{
	struct kernel_event *e;
	unsigned n_failed = 0;
	int ret;

	ky_list_foreach (e, &set->events, node) {
		ret = apply_event(set, e);
		if (ret < 0 && !n_failed++)
			report_refusal(set, e, ret);
	}
	if (n_failed > 1)
		ky_warning("session '%s': the kernel refuses to record %u more events",
			set->channel->session->name, n_failed - 1);
}

static const char *next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

/* The list has a line "SYSTEM:NAME" for each event. */
static bool list_has(const char *list, const struct kernel_event *e)
{
	size_t system = strlen(e->system), name = strlen(e->name);

	for (; *list; list = next_line(list))
		if (strcspn(list, "\n") == system + 1 + name && !memcmp(list, e->system, system) &&
			!memcmp(list + system + 1, e->name, name))
			return true;
	return false;
}

/* Returns whether the list of enabled events has as many as we have enabled. */
static bool list_is_whole(const char *list, const struct kernel_set *set)
{
	const struct kernel_event *e;
	size_t n = 0;

	for (; *list; list = next_line(list))
		n++;
	ky_list_foreach (e, &set->events, node)
		n -= e->enabled;
	return !n;
}

unsigned kernel_events_check(struct kernel_set *set)
{
	_cleanup_free_ char *list = tracefs_read(set->main.dir, "set_event");
	struct kernel_event *e;
	unsigned n = 0;

	if (!list || list_is_whole(list, set))
		return 0;
	ky_list_foreach (e, &set->events, node)
		if (e->enabled && !list_has(list, e)) {
			e->enabled = false;
			n++;
		}
	if (n)
		kernel_events_apply(set);
	return n;
}

void kernel_events_check_files(struct kernel_set *set)
{
	const struct kernel_event *e;
	const char *path;

	ky_list_foreach (e, &set->events, node)
		if (e->wanted && (path = probes_replaced(&set->probe_files, e->name)))
			session_notice(set->channel->session,
				"channel '%s': %s is another file now, and probe '%s' is in the earlier one: enable a probe with another name for the new file",
				set->channel->name, path, e->name);
}

bool kernel_events_rest(struct kernel_set *set, uint64_t until_ns)
{
	struct kernel_event *e;

	ky_list_foreach (e, &set->events, node) {
		if (!e->enabled)
			continue;
		if (ky_clock_ns(CLOCK_MONOTONIC) >= until_ns)
			return false;
		write_event(set, e, "enable", "0");
		e->enabled = false;
	}
	return true;
}

void kernel_events_disable(struct kernel_set *set)
{
	struct kernel_event *e;

	ky_list_foreach (e, &set->events, node)
		if (e->enabled && !e->wanted)
			apply_event(set, e);
}
