/* SPDX-License-Identifier: MIT */
#include "sessiond/model/conflict.h"

#include "sessiond/model/describe.h"
#include "sessiond/model/user.h"

#define DEFINITION_MAX 400

void conflict_describe(struct ky_buf *to, const struct channel *c, const struct set_event *e)
{
	struct ky_buf here = {.max = DEFINITION_MAX}, there = {.max = DEFINITION_MAX};
	const struct set_event *first = e->rival;
	bool refused = e->id == KY_MAP_REFUSED;

	describe_event(&here, event_desc_bytes(e->desc));
	describe_event(&there, event_desc_bytes(first->desc));
	ky_buf_printf(to,
		"channel '%s': event '%s' of program %s (pid %d) is %s: it is defined as %s, but by program %s (pid %d) as %s",
		c->name, e->desc->name, e->by.name, (int)e->by.pid,
		refused ? "counted as discarded" : "recorded as another event of that name",
		here.data ? here.data : "", first->by.name, (int)first->by.pid,
		there.data ? there.data : "");
	if (refused)
		ky_buf_printf(to, "; 'kymo set -s %s -c %s event-conflict=separate' records both",
			c->session->name, c->name);
	ky_buf_deinit(&here);
	ky_buf_deinit(&there);
}

void conflict_comment(struct ky_buf *to, const struct channel *c, const struct set_event *e)
{
	size_t begin;

	ky_buf_puts(to, "/* ");
	begin = to->len;
	conflict_describe(to, c, e);
	for (size_t i = begin; i < to->len; i++)
		if (to->data[i] == '*') /* nothing in it ends the comment */
			to->data[i] = '?';
	ky_buf_puts(to, " */\n\n");
}

static void report_set(const struct ring_set *set, bool refused_only,
	void (*each)(void *arg, const char *text), void *arg)
{
	struct ky_hnode *n, *tmp;
	size_t i;

	ky_htab_foreach(&set->events, i, n, tmp)
	{
		const struct set_event *e = ky_container_of(n, struct set_event, node);
		struct ky_buf text = {0};

		if (!e->rival || (refused_only && e->id != KY_MAP_REFUSED))
			continue;
		conflict_describe(&text, set->channel, e);
		if (text.data)
			each(arg, text.data);
		ky_buf_deinit(&text);
	}
}

void conflicts_report(const struct session *s, bool refused_only,
	void (*each)(void *arg, const char *text), void *arg)
{
	const struct channel *c;
	const struct ring_set *set;

	ky_list_foreach (c, &s->channels, node)
		ky_list_foreach (set, &c->sets, node)
			report_set(set, refused_only, each, arg);
}
