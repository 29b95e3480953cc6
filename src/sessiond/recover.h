/* SPDX-License-Identifier: MIT */
/*
 * Taking over from a session daemon that was killed, or asked to make room: its sessions from their journals, the descriptors
 * of their rings from their consumers, which call. Programs and clients are served once that is done.
 */
#ifndef SESSIOND_RECOVER_H
#define SESSIOND_RECOVER_H

#include "sessiond/daemon.h"

void recover_init(struct daemon *d);
/*
 * Begins; op is done when all consumers have come that can be expected. 0, or -errno after a logged line.
 */
int recover_begin(struct daemon *d, struct op *op);
void recover_deinit(struct daemon *d);
/* A session of a predecessor has been settled. */
void recover_settled(struct daemon *d);

#endif
