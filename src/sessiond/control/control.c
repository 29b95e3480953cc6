/* SPDX-License-Identifier: MIT */
#include "sessiond/control/control.h"

#include "sessiond/control/request.h"
#include "sessiond/control/selection.h"
#include "sessiond/model/session.h"

/* Requests that wait for the session do not come back to it. */
static void session_freed(struct session *s)
{
	struct control *k = s->env->control;
	struct request *r;

	selections_forget(k, s);
	ky_list_foreach (r, &k->requests, node) {
		if (r->session != s)
			continue;
		r->session = NULL;
		r->session_lost = true;
	}
}

void control_init(struct control *k, struct env *e)
{
	k->env = e;
	e->control = k;
	k->n_clients = 0;
	ky_list_init(&k->clients);
	ky_list_init(&k->requests);
	ky_list_init(&k->selections);
	k->observer = (struct observer){.session_freed = session_freed};
	ky_list_append(&e->observers, &k->observer.node);
}
