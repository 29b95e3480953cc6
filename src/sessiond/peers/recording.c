/* SPDX-License-Identifier: MIT */
#include "sessiond/peers/recording.h"

void sessions_flush(struct env *e, struct barrier *b)
{
	struct session *s;

	ky_list_foreach (s, &e->sessions, node)
		consumer_flush(&recording_of(s)->consumer, b);
}
