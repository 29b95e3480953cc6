/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/recording.h"

void sessions_flush(struct env *e, struct barrier *b)
{
	struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		consumer_flush(&recording_of(s)->consumer, b);
}

struct trigger *recording_find_trigger(const struct session *s, const char *name)
{
	struct trigger *t;

	ky_list_foreach (t, &recording_of(s)->triggers.list, node)
		if (!strcmp(t->spec.name, name))
			return t;
	return NULL;
}
