/* SPDX-License-Identifier: MIT */
/*
 * Takes over from a session daemon that was killed, or asked to make room: its sessions from their
 * journals, the descriptors of their rings from their consumers, which call. The daemon serves
 * applications and clients once that is done.
 */
#ifndef SESSIOND_RECOVER_H
#define SESSIOND_RECOVER_H

#include "sessiond/model/env.h"
#include "sessiond/model/op.h"
#include "svc/unix.h"

struct recovery {
	struct env *env;
	struct ky_listener listener;
	struct ky_timer timer;
	uint64_t begun_ns;
	unsigned n_held; /* how often in a row no consumer was able to call */
	struct op *op;	 /* NULL: it was done */
	struct observer observer;
};

void recover_init(struct recovery *r, struct env *e);
/*
 * Begins the recovery. op is done when all consumers have called that can be expected to. Returns
 * 0, or -errno after a logged line.
 */
int recover_begin(struct recovery *r, struct op *op);
void recover_deinit(struct recovery *r);

#endif
