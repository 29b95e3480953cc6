/* SPDX-License-Identifier: MIT */
#include "sessiond/control/explain.h"

#include "base/glob.h"
#include "base/loglevel.h"
#include "sessiond/kernel/matches.h"
#include "sessiond/peers/app.h"
#include "sessiond/peers/agents.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/rundir.h"

#define NEAR_MAX 3 /* names offered for one that nothing has */

/* Reasons why an event is not recorded although the rule's pattern matches it. */
enum obstacle {
	OBSTACLE_LEVEL,
	OBSTACLE_EXCLUDED,
	OBSTACLE_REFUSED,
	OBSTACLE_UNTRACKED,
	OBSTACLE_OTHER, /* has a notice of its own, or passes */
	N_OBSTACLES,
};

/* An example of an obstacle. */
struct example {
	const struct app *app;
	const struct event_desc *event; /* NULL: there is none */
	const char *by;			/* the exclusion */
};

static const char *find_exclusion(const struct rule *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_exclusions; i++)
		if (ky_glob_match(r->exclusions[i], name))
			return r->exclusions[i];
	return NULL;
}

static bool is_refused(const struct channel *c, const struct event_desc *d)
{
	const struct ring_set *set;
	const struct set_event *e;

	ky_list_foreach (set, &c->sets, node) {
		e = ring_set_event(set, d);
		if (e && e->id == KY_MAP_REFUSED)
			return true;
	}
	return false;
}

static enum obstacle find_obstacle(const struct channel *c, const struct rule *r,
	const struct app *a, const struct event_desc *d, const char **ret_by)
{
	const struct rule levels = {
		.pattern = r->pattern, .level_type = r->level_type, .level = r->level};

	*ret_by = find_exclusion(r, d->name);
	if (!rule_matches(&levels, d->name, d->loglevel))
		return OBSTACLE_LEVEL;
	if (*ret_by)
		return OBSTACLE_EXCLUDED;
	if (is_refused(c, d))
		return OBSTACLE_REFUSED;
	return app_is_tracked(a, c->session) ? OBSTACLE_OTHER : OBSTACLE_UNTRACKED;
}

/*
 * Finds an example of each obstacle of events that match the pattern. Returns false if no
 * application has such an event. Sets *ret_own to one of Kymo's own events, which the pattern
 * matches only if it names them, or to NULL.
 */
static bool find_examples(const struct channel *c, const struct rule *r,
	struct example examples[N_OBSTACLES], const char **ret_own)
{
	const struct app *a;
	bool any = false;

	*ret_own = NULL;
	ky_list_foreach (a, &c->session->env->peers->apps, node) {
		for (uint32_t i = 0; i < a->n_events; i++) {
			const struct event_desc *d = a->events[i];
			enum obstacle o;
			const char *by;

			if (!d || !session_wants_uid(c->session, a->user->uid) ||
				!ky_glob_match(r->pattern, d->name))
				continue;
			if (!ky_glob_match_event(r->pattern, d->name)) {
				*ret_own = d->name;
				continue;
			}
			o = find_obstacle(c, r, a, d, &by);
			if (!examples[o].event)
				examples[o] = (struct example){a, d, by};
			any = true;
		}
	}
	return any;
}

static void put_example(
	struct ky_buf *to, const struct rule *r, enum obstacle o, const struct example *x)
{
	const char *name = x->event->name;

	switch (o) {
	case OBSTACLE_LEVEL:
		ky_buf_printf(to, "'%s' is of level %s, and the rule wants %s%s", name,
			ky_loglevel_names[x->event->loglevel],
			r->level_type == KY_LEVEL_ONLY ? "only " : "", ky_loglevel_names[r->level]);
		ky_buf_puts(to, r->level_type == KY_LEVEL_ONLY ? "" : " or more severe");
		break;
	case OBSTACLE_EXCLUDED:
		ky_buf_printf(to, "'%s' is excluded by '%s'", name, x->by);
		break;
	case OBSTACLE_REFUSED:
		ky_buf_printf(to, "the definition of '%s' in application %s (pid %d) was refused",
			name, x->app->name, (int)x->app->pid);
		break;
	case OBSTACLE_UNTRACKED:
		ky_buf_printf(to,
			"application %s (pid %d, user %u, group %u), which has '%s', is not tracked ('kymo track')",
			x->app->name, (int)x->app->pid, (unsigned)x->app->user->uid,
			(unsigned)x->app->gid, name);
		break;
	default:
		ky_buf_printf(to, "application %s (pid %d), which has '%s', has not %s",
			x->app->name, (int)x->app->pid, name,
			x->app->n_queries ? "answered: is it stopped?" : "taken it up");
	}
}

static void put_examples(
	struct ky_buf *to, const struct rule *r, const struct example examples[N_OBSTACLES])
{
	const char *separator = "";

	for (int o = 0; o < N_OBSTACLES; o++) {
		if (!examples[o].event)
			continue;
		ky_buf_puts(to, separator);
		put_example(to, r, (enum obstacle)o, &examples[o]);
		separator = "; ";
	}
}

/* Names of events like the pattern, each once: "did you mean 'a:b', 'a:c'?" */
static bool put_near(struct ky_buf *to, const struct session *s, const struct rule *r)
{
	const char *names[NEAR_MAX];
	const struct app *a;
	unsigned n = 0, n_compared = 0, i;

	ky_list_foreach (a, &s->env->peers->apps, node) {
		for (uint32_t e = 0; e < a->n_events && n < NEAR_MAX; e++) {
			const struct event_desc *d = a->events[e];

			if (!d || !session_wants_uid(s, a->user->uid) ||
				n_compared++ >= RULE_COMPARED_MAX ||
				!name_is_near(r->pattern, d->name))
				continue;
			for (i = 0; i < n && strcmp(names[i], d->name); i++)
				;
			if (i < n)
				continue;
			names[n++] = d->name;
			ky_buf_printf(to, "%s'%s'", n > 1 ? ", " : "did you mean ", d->name);
		}
	}
	/* A command's programs have ended, but they have left names. */
	for (i = 0; !n && i < r->n_similar; i++)
		ky_buf_printf(to, "%s'%s'", i ? ", " : "did you mean ", r->similar[i]);
	if (n || i)
		ky_buf_puts(to, "?");
	return n || i;
}

/* Returns whether the rule names Kymo's own events. */
static bool wants_own(const struct rule *r)
{
	return !strncmp(r->pattern, "kymo_", strlen("kymo_"));
}

/* Programs that the rule could be about, and one of them that has not answered. */
static unsigned count_programs(
	const struct session *s, const struct rule *r, const struct app **ret_silent)
{
	const struct app *a;
	unsigned n = 0;

	*ret_silent = NULL;
	ky_list_foreach (a, &s->env->peers->apps, node) {
		if (!a->registered || !session_wants_uid(s, a->user->uid) ||
			(collector_is(s->env->peers->collector, a->pid) && !wants_own(r)))
			continue;
		n++;
		if (a->n_queries)
			*ret_silent = a;
	}
	return n;
}

static void put_programs(struct ky_buf *to, const struct session *s, const struct rule *r)
{
	const struct app *silent;
	unsigned n = count_programs(s, r, &silent);
	bool bound = s->env->bound; /* to a command, which has come to its end */

	if (bound)
		ky_buf_puts(to, "none of the command's applications had such an event");
	else if (n == 1)
		ky_buf_puts(to,
			"the only application that runs has no such event ('kymo list -u' shows what it has)");
	else if (n)
		ky_buf_printf(to,
			"none of the %u running applications has such an event ('kymo list -u' shows them)",
			n);
	else
		ky_buf_puts(to, "no instrumented application is running");
	if (silent)
		ky_buf_printf(to, "; application %s (pid %d) has not answered: is it stopped?",
			silent->name, (int)silent->pid);
	if (!s->all_uids)
		ky_buf_printf(to, "; this daemon knows those of user %u, root's knows all",
			(unsigned)s->uid);
	if (!n && !bound)
		ky_buf_printf(to, "; applications find this daemon in %s (KYMO_RUNDIR)",
			s->env->run->path);
}

static void put_agents(struct ky_buf *to, const struct agents *a)
{
	if (*a->trouble)
		ky_buf_printf(
			to, "agents of Python and Java programs cannot connect: %s", a->trouble);
	else
		ky_buf_puts(to, "no program with an agent of this kind has connected");
}

/* Why there are no events of the system's state, if there are none for any rule. */
static void put_collector(struct ky_buf *to, const struct env *e)
{
	if (!e->peers->collector->wanted && !e->bound)
		ky_buf_puts(to, "kymo-sessiond was started with --no-collectd; ");
	else if (*e->peers->collector->trouble)
		ky_buf_printf(
			to, "the collector of system state %s; ", e->peers->collector->trouble);
}

void explain_kernel_name(struct ky_buf *to, const struct env *e, const struct rule *r)
{
	bool is_narrow = *r->pattern != '*' &&
			 (strchr(r->pattern, ':') || !strchr(r->pattern, '*'));
	char why[KERNEL_WHY_MAX];

	/* A pattern such as 'a*' matches events of the kernel by chance. */
	if (is_narrow && kernel_count_matches(e->kernel, r, NULL, why) > 0)
		ky_buf_puts(to, "; the kernel has such events: --kernel records them");
}

/* Returns true if the pattern has no provider or no name, which each event has: "a", "a:", ":b". */
static bool lacks_part(const char *pattern)
{
	const char *colon = strchr(pattern, ':');

	return !strchr(pattern, '*') && (!colon || colon == pattern || !colon[1]);
}

static void put_whole(struct ky_buf *to, const char *pattern)
{
	if (*pattern == ':' && pattern[1])
		ky_buf_printf(
			to, "events are called PROVIDER:NAME, of any provider '*%s'", pattern);
	else
		ky_buf_printf(to, "events are called PROVIDER:NAME, all of a provider '%s%s*'",
			pattern, strchr(pattern, ':') ? "" : ":");
}

void explain_rule(struct ky_buf *to, const struct channel *c, const struct rule *r)
{
	const struct env *e = c->session->env;
	struct example examples[N_OBSTACLES] = {{0}};
	const char *own = NULL;

	ky_buf_printf(to, "rule '%s' matches nothing: ", r->pattern);
	if (wants_own(r))
		put_collector(to, e);
	if (agents_is_pattern(r->pattern))
		put_agents(to, e->peers->agents);
	else if (find_examples(c, r, examples, &own))
		put_examples(to, r, examples);
	else if (lacks_part(r->pattern))
		put_whole(to, r->pattern);
	else if (own || !put_near(to, c->session, r))
		put_programs(to, c->session, r);
	if (own && strcmp(r->pattern, "*") != 0)
		ky_buf_printf(to,
			"; '%s' and others of Kymo's own are recorded by patterns that begin with 'kymo_'",
			own);
	if (e->bound)
		explain_kernel_name(to, e, r);
}
