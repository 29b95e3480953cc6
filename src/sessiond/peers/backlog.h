/* SPDX-License-Identifier: MIT */
/* The events in the buffers of a session that its consumer has not written yet. */
#ifndef SESSIOND_PEERS_BACKLOG_H
#define SESSIOND_PEERS_BACKLOG_H

#include "base/buf.h"

struct consumer;

/* Of buffers in discard mode: what the consumer has not reported or read. */
struct backlog {
	uint64_t recorded, discarded; /* events */
	uint64_t fill;		      /* of the fullest buffer, in per cent */
};
void consumer_backlog(const struct consumer *c, struct backlog *ret_backlog);
/*
 * Appends why the consumer has not done what it was asked for: its state, and how much work waits
 * for it.
 */
void consumer_put_unfinished(const struct consumer *c, struct ky_buf *to);

#endif
