/* SPDX-License-Identifier: MIT */
#include "consumerd/traces.h"

#include "consumerd/stream/trace.h"

static struct trace *find_trace(struct consumerd *c, const char *dir)
{
	struct trace *t;

	ky_list_foreach (t, &c->traces, node)
		if (!strcmp(t->dir, dir))
			return t;
	return NULL;
}

struct trace *traces_get(struct consumerd *c, const struct ky_cons_ring_set *m, int *log_fd)
{
	struct trace *t = find_trace(c, m->dir);

	if (t)
		return t;
	t = trace_new(m, c->sink, c->resume, c->session->chunk, *log_fd);
	*log_fd = -1;
	if (t)
		ky_list_append(&c->traces, &t->node);
	return t;
}
