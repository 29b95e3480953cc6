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

/* Returns whether a set before `until` has counted an event of this name. */
static bool is_counted_before(const struct channel *c, const struct ring_set *until,
	const struct event_desc *d, bool living)
{
	struct ring_set *set;

	ky_list_foreach (set, &c->sets, node) {
		if (set == until)
			return false;
		if (ring_set_find_named(set, d, living))
			return true;
	}
	return false;
}

unsigned channel_count_matches(const struct channel *c, const struct rule *r, bool living)
{
	struct ring_set *set;
	struct ky_hnode *n, *tmp;
	unsigned count = 0;
	size_t i;

	if (c->domain == DOMAIN_KERNEL)
		return r->n_matched;
	ky_list_foreach (set, &c->sets, node) {
		ky_htab_foreach(&set->events, i, n, tmp)
		{
			struct set_event *e = ky_container_of(n, struct set_event, node);

			if (e->id != KY_MAP_REFUSED && (e->n_apps || !living) &&
				rule_wants(r, e->desc) &&
				!is_counted_before(c, set, e->desc, living))
				count++;
		}
	}
	return count;
}

static void report_set(const struct ring_set *set, enum conflicts which,
	void (*each)(void *arg, const char *text), void *arg)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&set->events, i, n, tmp)
	{
		const struct set_event *e = ky_container_of(n, struct set_event, node);
		struct ky_buf text = {0};

		if (!e->rival || !(which & (e->id == KY_MAP_REFUSED ? CONFLICTS_REFUSED
								    : CONFLICTS_RECORDED)))
			continue;
		conflict_describe(&text, set->channel, e);
		if (text.data)
			each(arg, text.data);
		ky_buf_deinit(&text);
	}
}

void conflicts_report(const struct session *s, enum conflicts which,
	void (*each)(void *arg, const char *text), void *arg)
{
	const struct channel *c;
	const struct ring_set *set;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			report_set(set, which, each, arg);
}
