/* SPDX-License-Identifier: MIT */
/* Clients, their requests, and each user's current session. */
#ifndef SESSIOND_CONTROL_CONTROL_H
#define SESSIOND_CONTROL_CONTROL_H

#include "sessiond/model/env.h"

struct control {
	struct env *env;
	struct ky_list clients, requests, selections;
	unsigned n_clients;
	struct observer observer;
};

/* client.c */
void control_init(struct control *k, struct env *e);
/* Answers requests that wait for messages of triggers, if there are any; or all. cmd-trigger.c */
void watches_answer(struct control *k, bool all);

#endif
