/* SPDX-License-Identifier: MIT */
/* Applications, their processes, and the collector: what env->peers leads to. */
#ifndef SESSIOND_PEERS_PEERS_H
#define SESSIOND_PEERS_PEERS_H

#include "sessiond/model/env.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/rundir.h"

struct peers {
	struct env *env;
	struct rundir *run;
	struct ky_list apps, processes;
	struct collector collector;
	unsigned user_apps_max;
	bool while_used; /* the daemon lives as long as applications do, which may have their events written out */
	struct observer observer;
};

void peers_init(struct peers *p, struct env *e, struct rundir *run);

#endif
