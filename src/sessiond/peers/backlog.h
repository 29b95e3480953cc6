/* SPDX-License-Identifier: MIT */
/* The events in the buffers that a session's consumer has not written yet. */
#ifndef SESSIOND_PEERS_BACKLOG_H
#define SESSIOND_PEERS_BACKLOG_H

#include "base/buf.h"
#include "sessiond/model/contents.h"

/* Of buffers in discard mode: what the consumer has not reported or read. */
struct backlog {
	uint64_t recorded, discarded; /* events */
	uint64_t fill;		      /* of the fullest buffer, in per cent */
};
void session_backlog(const struct session *s, struct backlog *ret_backlog);
/*
 * Appends why the consumer has not done what it was asked for: its state, and how much work waits
 * for it.
 */
void session_put_unfinished(const struct session *s, struct ky_buf *to);

#endif
