/* SPDX-License-Identifier: MIT */
/*
 * Messages that describe a session and its ring sets to its consumer. If the buffers are files, the
 * messages are also in a file beside them, from which `kymo recover` completes the trace when no
 * daemon is left (svc/shm-dir.h).
 */
#ifndef SESSIOND_PEERS_ORDERS_H
#define SESSIOND_PEERS_ORDERS_H

#include "proto/consumer.h"
#include "sessiond/model/contents.h"

/* Encodes the set's RING_SET. Returns the message's length, or -EMSGSIZE. */
int order_ring_set(struct ky_writer *w, const struct ring_set *set);

/*
 * Writes INIT to that file, as a consumer that recovers needs it. Does nothing if buffers are not
 * files. Returns 0 or -errno.
 */
int orders_begin(const struct session *s);
/* Writes the set's RING_SET there. Returns 0 or -errno. */
int orders_add_set(struct ring_set *set);

#endif
