/* SPDX-License-Identifier: MIT */
/* Applications, their processes, and the collector: what env->peers leads to. Knows nothing of what these are. */
#ifndef SESSIOND_PEERS_PEERS_H
#define SESSIOND_PEERS_PEERS_H

#include "sessiond/model/env.h"

struct collector;
struct rundir;

struct peers {
	struct env *env;
	struct ky_list apps, processes;
	struct collector *collector;
	unsigned user_apps_max;
	bool while_used; /* the daemon lives as long as applications do, which may have their events written out */
	struct observer observer;
};

/* run, c: borrowed. changes.c */
void peers_init(struct peers *p, struct env *e, struct rundir *run, struct collector *c);

#endif
