/* SPDX-License-Identifier: MIT */
#include "sessiond/model/env.h"

#include "svc/log.h"

void env_init(struct env *e)
{
	memset(e, 0, sizeof(*e));
	ky_list_init(&e->observers);
	ky_list_init(&e->sessions);
	ky_list_init(&e->lost);
	users_init(&e->users, &e->loop);
}

uint32_t env_next_cookie(struct env *e)
{
	if (!++e->last_cookie)
		e->last_cookie = 1;
	return e->last_cookie;
}

void env_set_cause(struct env *e, uid_t uid)
{
	e->cause = uid;
	ky_log_set_cause(uid == e->uid ? KY_LOG_NOBODY : uid);
}

uint32_t env_next_number(struct env *e)
{
	return ++e->last_number;
}
