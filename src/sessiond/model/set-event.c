/* SPDX-License-Identifier: MIT */
#include "sessiond/model/set-event.h"

#include "proto/app.h"
#include "sessiond/model/channel.h"
#include "sessiond/model/describe.h"
#include "sessiond/model/session.h"

#define DEFINITION_MAX 400

void conflict_describe(struct ky_buf *to, const struct channel *c, const struct set_event *e)
{
	struct ky_buf here = {.max = DEFINITION_MAX}, there = {.max = DEFINITION_MAX};
	const struct set_event *first = e->rival;
	bool refused = e->id == KY_MAP_REFUSED;

	describe_event(&here, event_desc_bytes(e->desc));
	describe_event(&there, event_desc_bytes(first->desc));
	ky_buf_printf(to,
		"channel '%s': event '%s' of application %s (pid %d) is %s: it is defined as %s, but by application %s (pid %d) as %s",
		c->name, e->desc->name, e->by.name, (int)e->by.pid,
		refused ? "counted as discarded" : "recorded as another event of that name",
		here.data ? here.data : "", first->by.name, (int)first->by.pid,
		there.data ? there.data : "");
	if (refused && c->session->env->bound)
		ky_buf_puts(to, "; without --event-conflict=refuse, both are recorded");
	else if (refused)
		ky_buf_printf(to, "; 'kymo set -s %s -c %s event-conflict=separate' records both",
			c->session->name, c->name);
	ky_buf_deinit(&here);
	ky_buf_deinit(&there);
}
