/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/triggers.h"

#include "base/glob.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/kernel/matches.h"
#include "sessiond/peers/firing.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/recording.h"
#include "sessiond/peers/trigger-actions.h"
#include "sessiond/peers/trigger-amounts.h"

/* --- the list --- */

void triggers_init(struct triggers *t, struct session *s, const struct trigger_ops *ops)
{
	*t = (struct triggers){.session = s, .ops = ops};
	ky_list_init(&t->list);
	trigger_amounts_init(t);
	ky_timer_init(&t->firing, firing_timer);
}

static void trigger_free(struct trigger *t)
{
	ky_list_remove(&t->node);
	trigger_spec_deinit(&t->spec);
	kept_deinit(&t->kept);
	free(t);
}

void triggers_deinit(struct triggers *t)
{
	struct trigger *one, *tmp;

	trigger_actions_abandon(t->session);
	trigger_amounts_deinit(t);
	ky_timer_cancel(&t->firing);
	ky_list_foreach_safe (one, tmp, &t->list, node)
		trigger_free(one);
}

static unsigned count_of_user(const struct env *e, uid_t uid)
{
	const struct session *s;
	unsigned n = 0;

	ky_list_foreach (s, &e->sessions, node)
		n += s->uid == uid ? recording_of(s)->triggers.n : 0;
	return n;
}

int trigger_add(struct session *s, struct trigger_spec *spec)
{
	struct triggers *all = &recording_of(s)->triggers;
	struct trigger *t;

	if (recording_find_trigger(s, spec->name))
		return -EEXIST;
	if (all->n >= TRIGGERS_MAX ||
		(s->uid != s->env->uid && count_of_user(s->env, s->uid) >= USER_TRIGGERS_MAX))
		return -EDQUOT;
	if (firing_number(all, spec) < 0)
		return -EDQUOT;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->session = s;
	t->spec = *spec;
	*spec = (struct trigger_spec){0};
	trigger_amounts_begin(t);
	ky_list_append(&all->list, &t->node);
	all->n++;
	OBSERVE(s->env, trigger_changed, s, &t->spec, false);
	trigger_amounts_watch(all);
	firing_watch(all);
	return 0;
}

void trigger_remove(struct trigger *t)
{
	struct triggers *all = &recording_of(t->session)->triggers;

	OBSERVE(t->session->env, trigger_changed, t->session, &t->spec, true);
	firing_remove(t);
	trigger_free(t);
	all->n--;
	trigger_amounts_watch(all);
	firing_watch(all);
}

void triggers_session_state(struct session *s)
{
	trigger_amounts_watch(&recording_of(s)->triggers);
	firing_watch(&recording_of(s)->triggers);
}

/* Returns whether the condition names one event that only the kernel has. */
static bool is_of_kernel(const struct session *s, const struct condition *c)
{
	char why[KERNEL_WHY_MAX];

	if (c->kind != WHEN_EVENT || strchr(c->rule->pattern, '*'))
		return false;
	return !strchr(c->rule->pattern, ':') ||
	       (session_has_kernel(s) &&
		       kernel_count_matches(s->env->kernel, c->rule, NULL, why) > 0);
}

/*
 * Whether nobody counts this session's events: the kernel overwrites those of its channels itself,
 * and only snapshots read them.
 */
static bool is_uncounted(const struct session *s)
{
	const struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (c->domain != DOMAIN_KERNEL || !c->overwrite)
			return false;
	return session_has_kernel(s);
}

const char *trigger_refusal(const struct session *s, const struct trigger_spec *spec)
{
	enum condition_kind kind = spec->condition.kind;
	struct ky_resume_session memory;
	bool writes = !s->snapshot && *s->output;

	if (!writes && (kind == WHEN_BYTES_RATE || kind == WHEN_SIZE || kind == WHEN_BUFFERS ||
			       kind == WHEN_DISK_FREE || kind == WHEN_ROTATED))
		return "it writes no trace, so the condition would never be true";
	if ((kind == WHEN_EVENTS_RATE || kind == WHEN_DISCARDED) && is_uncounted(s))
		return "its channels are of the kernel and in overwrite mode, where nobody counts events, so the condition would never be true";
	if (kind == WHEN_DISK_FREE && !spec->condition.percent &&
		consumer_read_memory(&recording_of(s)->consumer, &memory) && memory.disk_size &&
		spec->condition.limit > memory.disk_size)
		return "its disk is smaller than that, so the condition would always be true";
	if (!writes && trigger_has_action(spec, DO_ROTATE))
		return "it writes no trace, so there is nothing to rotate";
	if (!*s->output && trigger_has_action(spec, DO_SNAPSHOT))
		return "it writes no trace, so there is no place for a snapshot";
	if (is_of_kernel(s, &spec->condition))
		return "applications decide event(), and their events are called 'PROVIDER:NAME': events of the kernel do not meet it ('events/s > N' counts them)";
	if (trigger_has_action(spec, DO_RUN) && !s->env->peers->allows_commands)
		return "the session daemon runs no commands: 'kymo-sessiond --take-over --daemonize --allow-commands' replaces it by one that does";
	return NULL;
}

/* --- conditions that are reported --- */

void triggers_program_died(struct session *s, const struct death *d)
{
	struct trigger *t, *tmp;

	ky_list_foreach_safe (t, tmp, &recording_of(s)->triggers.list, node) {
		const struct condition *c = &t->spec.condition;

		if (c->kind == WHEN_DIED && (!c->subject || ky_glob_match(c->subject, d->name)))
			trigger_fire(t, "%s (pid %d) ended by signal %d%s", d->name, (int)d->pid,
				d->signal, d->dumped ? ", core dumped" : "");
	}
}

void triggers_rotated(struct session *s)
{
	const char *path = recording_of(s)->rotation.path;
	struct trigger *t, *tmp;

	ky_list_foreach_safe (t, tmp, &recording_of(s)->triggers.list, node)
		if (t->spec.condition.kind == WHEN_ROTATED)
			trigger_fire(t, "rotated: %s", path ? path : "");
}
