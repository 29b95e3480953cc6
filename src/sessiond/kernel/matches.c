/* SPDX-License-Identifier: MIT */
#include "sessiond/kernel/matches.h"

#include "base/glob.h"
#include "kernel/names.h"
#include "sessiond/kernel/probes.h"

#define AVAILABLE "available_events"
#define CALLS	  "syscalls"
#define ENTER	  "sys_enter_"
#define EXIT	  "sys_exit_"

int kernel_events_list(
	struct kernel *k, void (*each)(void *arg, const char *system, const char *name), void *arg)
{
	char *text = tracefs_read(k->fs.root, AVAILABLE), *rest = text, *line, *name;

	if (!text)
		return -errno;
	while ((line = strsep(&rest, "\n"))) {
		name = strchr(line, ':');
		if (!name)
			continue;
		*name++ = '\0';
		each(arg, line, name);
	}
	free(text);
	return 0;
}

/* Returns the call of an event of system calls, or NULL. */
static const char *call_of(const struct kernel_candidate *c)
{
	if (strcmp(c->system, CALLS) != 0)
		return NULL;
	if (!strncmp(c->name, ENTER, strlen(ENTER)))
		return c->name + strlen(ENTER);
	return strncmp(c->name, EXIT, strlen(EXIT)) ? NULL : c->name + strlen(EXIT);
}

static bool is_probe(const char *system)
{
	return !strncmp(system, "kymo_", 5);
}

static bool matches_full(const char *pattern, const struct kernel_candidate *c)
{
	char full[2 * KY_KPROGRAM_NAME];

	if (!strchr(pattern, ':'))
		return false;
	snprintf(full, sizeof(full), "%s:%s", c->system, c->name);
	return ky_glob_match(pattern, full);
}

/*
 * Matches the trace's name, the kernel's, or SYSTEM:NAME. A pattern that begins with '*' does not
 * match system calls: they have rules of their own, and all of them are most of what happens.
 */
static bool matches_name(const char *pattern, const struct kernel_candidate *c)
{
	if (is_probe(c->system) ||
		(*pattern == '*' && (call_of(c) || !strcmp(c->system, "raw_syscalls"))))
		return false;
	return ky_glob_match(pattern, c->name) || ky_glob_match(pattern, c->trace_name) ||
	       matches_full(pattern, c);
}

static bool matches_pattern(
	const struct rule *r, const char *pattern, const struct kernel_candidate *c)
{
	switch (r->kind) {
	case RULE_EVENT:
		return matches_name(pattern, c);
	case RULE_SYSCALL:
		return call_of(c) && ky_glob_match(pattern, call_of(c));
	default:
		return false;
	}
}

bool kernel_rule_has(
	const struct kernel_set *set, const struct rule *r, const struct kernel_candidate *c)
{
	char group[PROBES_GROUP_MAX];

	if (r->probe)
		return set && !strcmp(c->system, probes_group(set->main.name, group)) &&
		       probes_is_of(r->probe, c->name);
	for (uint32_t i = 0; i < r->n_exclusions; i++)
		if (matches_pattern(r, r->exclusions[i], c))
			return false;
	return matches_pattern(r, r->pattern, c);
}

void kernel_candidate_init(struct kernel_candidate *c, const char *system, const char *name)
{
	c->system = system;
	c->name = name;
	ky_kname(system, name, c->trace_name, sizeof(c->trace_name));
}

struct count {
	const struct rule *rule;
	struct ky_buf *similar;
	unsigned n, n_similar;
};

/* The name that a user of such a rule gives; full: memory for "SYSTEM:NAME". */
static const char *name_for(
	const struct rule *r, const struct kernel_candidate *c, char full[2 * KY_KPROGRAM_NAME])
{
	if (r->kind == RULE_SYSCALL)
		return call_of(c) && !strncmp(c->name, ENTER, strlen(ENTER)) ? call_of(c) : NULL;
	if (call_of(c) || is_probe(c->system))
		return NULL;
	if (!strchr(r->pattern, ':'))
		return c->name;
	snprintf(full, 2 * KY_KPROGRAM_NAME, "%s:%s", c->system, c->name);
	return full;
}

static void count_event(void *arg, const char *system, const char *name)
{
	struct count *count = arg;
	struct kernel_candidate c;

	kernel_candidate_init(&c, system, name);
	count->n += kernel_rule_has(NULL, count->rule, &c);
}

static void put_similar(void *arg, const char *system, const char *name)
{
	struct count *count = arg;
	char full[2 * KY_KPROGRAM_NAME];
	struct kernel_candidate c;
	const char *near;

	kernel_candidate_init(&c, system, name);
	near = name_for(count->rule, &c, full);
	if (near && count->n_similar < RULE_SIMILAR_MAX && name_is_near(count->rule->pattern, near))
		ky_buf_printf(count->similar, "%s'%s'", count->n_similar++ ? ", " : "", near);
}

int kernel_count_matches(
	struct kernel *k, const struct rule *r, struct ky_buf *similar, char why[KERNEL_WHY_MAX])
{
	struct count count = {.rule = r, .similar = similar};
	int ret = tracefs_open(&k->fs, why);

	if (!ret)
		ret = kernel_events_list(k, count_event, &count);
	if (!ret && !count.n && similar)
		ret = kernel_events_list(k, put_similar, &count);
	return ret < 0 ? ret : (int)count.n;
}

const char *kernel_event_call(const char *system, const char *name)
{
	const struct kernel_candidate c = {.system = system, .name = name};

	return strncmp(name, ENTER, strlen(ENTER)) ? NULL : call_of(&c);
}
