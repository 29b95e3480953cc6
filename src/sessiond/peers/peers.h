/* SPDX-License-Identifier: MIT */
/*
 * Applications, their processes, and helper programs: the target of env->peers. This header needs
 * none of their definitions.
 */
#ifndef SESSIOND_PEERS_PEERS_H
#define SESSIOND_PEERS_PEERS_H

#include "sessiond/model/env.h"

struct agents;
struct collector;
struct ky_listener;
struct rundir;

struct peers {
	struct env *env;
	struct ky_list apps, processes;
	struct ky_list messages, commands; /* of triggers (trigger-{messages,actions}.h) */
	struct ky_list searches;	   /* for places of programs (program-places.h) */
	uint64_t last_message;
	bool allows_commands; /* of triggers */
	struct collector *collector;
	struct agents *agents;
	struct ky_listener *arrivals;		/* of applications; may be NULL */
	unsigned user_apps_max, users_apps_max; /* of one user; of all but the daemon's own */
	/*
	 * the daemon lives as long as applications, and applications may wait until their events
	 * are written
	 */
	bool while_used;
	struct observer observer;
};

/* run, c, a: borrowed. changes.c */
void peers_init(
	struct peers *p, struct env *e, struct rundir *run, struct collector *c, struct agents *a);

#endif
