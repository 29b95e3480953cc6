/* SPDX-License-Identifier: MIT */
#include "sessiond/model/contents.h"

#include "proto/app.h"

void session_clear(struct session *s)
{
	struct channel *c, *c_tmp;
	struct ring_set *set, *set_tmp;
	struct registry *r, *r_tmp;

	ky_list_foreach_safe (c, c_tmp, &s->channels, node) {
		ky_list_foreach_safe (set, set_tmp, &c->sets, node)
			ring_set_free(set);
		channel_free(c);
	}
	ky_list_foreach_safe (r, r_tmp, &s->registries, node)
		registry_free(r);
}

bool session_is_active(const struct session *s)
{
	struct channel *c;

	ky_list_foreach (c, &s->channels, node)
		if (s->state == SESSION_STARTED && channel_is_active(c))
			return true;
	return false;
}

bool channel_has_buffers(const struct channel *c)
{
	const struct ring_set *set;

	ky_list_foreach (set, &c->sets, node)
		if (set->described)
			return true;
	return c->kernel;
}

/* Returns whether the event counts for the rule; living: only if a running process has it. */
static bool counts(const struct rule *r, const struct set_event *e, bool living)
{
	return e->id != KY_MAP_REFUSED && (e->n_apps || !living) && rule_wants(r, e->desc);
}

/* Returns whether an event of this name that stands before this one counts for the rule. */
static bool is_counted_before(const struct channel *c, const struct rule *r,
	const struct ring_set *until, const struct set_event *e, bool living)
{
	struct ring_set *set;
	struct ky_hnode *n;

	ky_list_foreach (set, &c->kinds, group) {
		for (n = ky_htab_first(&set->events, e->node.hash); n; n = ky_htab_next(n)) {
			const struct set_event *other = ky_container_of(n, struct set_event, node);

			if (other == e)
				return false;
			if (!strcmp(other->desc->name, e->desc->name) && counts(r, other, living))
				return true;
		}
		if (set == until)
			return false;
	}
	return false;
}

static unsigned count_matches(const struct channel *c, const struct rule *r, bool living)
{
	struct ring_set *set;
	struct ky_hnode *n, *tmp;
	unsigned count = 0;
	size_t i;

	ky_list_foreach (set, &c->kinds, group) {
		ky_htab_foreach(&set->events, i, n, tmp)
		{
			const struct set_event *e = ky_container_of(n, struct set_event, node);

			count += counts(r, e, living) && !is_counted_before(c, r, set, e, living);
		}
	}
	return count;
}

unsigned channel_count_matches(const struct channel *c, struct rule *r, bool living)
{
	if (c->domain == DOMAIN_USER && living)
		return count_matches(c, r, true);
	if (c->domain == DOMAIN_USER && !r->counted) {
		r->n_matched = count_matches(c, r, false);
		r->counted = true;
	}
	return r->n_matched;
}

static void report_conflict(const struct channel *c, const struct set_event *e,
	void (*each)(void *arg, const char *text), void *arg)
{
	struct ky_buf text = {0};

	conflict_describe(&text, c, e);
	if (text.data)
		each(arg, text.data);
	ky_buf_deinit(&text);
}

/* Reports the first conflicts, and how many more there are. */
static void report_set(const struct ring_set *set, enum conflicts which,
	void (*each)(void *arg, const char *text), void *arg)
{
	unsigned left = (which & CONFLICTS_REFUSED ? set->n_refused : 0) +
			(which & CONFLICTS_RECORDED ? set->n_conflicts - set->n_refused : 0);
	unsigned left_out = left - KY_MIN(left, CONFLICTS_MAX);
	const struct set_event *e;
	char text[256];

	ky_list_foreach (e, &set->conflicts, conflict) {
		if (left == left_out)
			break;
		if (which & (e->id == KY_MAP_REFUSED ? CONFLICTS_REFUSED : CONFLICTS_RECORDED)) {
			report_conflict(set->channel, e, each, arg);
			left--;
		}
	}
	snprintf(text, sizeof(text),
		"channel '%s': %u more events of applications of uid %u have names that were defined otherwise before",
		set->channel->name, left_out, (unsigned)set->uid);
	if (left_out)
		each(arg, text);
}

void conflicts_report(const struct session *s, enum conflicts which,
	void (*each)(void *arg, const char *text), void *arg)
{
	const struct channel *c;
	const struct ring_set *set;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->kinds, group)
			report_set(set, which, each, arg);
}
