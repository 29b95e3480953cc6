/* SPDX-License-Identifier: MIT */
/*
 * A trace directory as a spool (docs/shipping.md): the disk space of packets is given back when the
 * other end has them on its disk, or, the oldest first, when too many wait. Then these expire.
 *
 * A hole takes the pages of a packet behind its first one: a consumer that is started again can
 * still walk from header to header. A packet that the other end does not have and that is a hole
 * here has expired. It is sent as an empty packet of the same size, whose events count as
 * discarded. Before that, its entry in the local index gets 0 events, while its header keeps the
 * number: so the bytes that are sent for an offset never differ, also after the sender was killed.
 */
#ifndef SHIP_SPOOL_H
#define SHIP_SPOOL_H

#include <stdbool.h>

#include "ctf/index.h"
#include "ctf/packet.h"

/* Expired events of the first n packets of a stream, so far. */
struct spool_sum {
	uint64_t n, events;
};

/*
 * Marks a directory as a spool for this URL, and tries whether its file system can make holes.
 * Returns 0, -EEXIST if it is one for another URL, -EOPNOTSUPP, or -errno.
 */
int spool_mark(int trace, const char *url);

/* Gives back the space of a packet. Returns 0 or -errno. */
int spool_punch(int stream, const struct ky_index_entry *e);
/* Was that done? */
bool spool_is_hole(int stream, const struct ky_index_entry *e);

/* Notes that entry i expires. Returns 0 or -errno. */
int spool_expire(int index, uint64_t i, const struct ky_index_entry *e);
/* Brings the sum to n packets. Returns 0 or -errno. */
int spool_add_up(struct spool_sum *sum, int stream, int index, uint64_t n);

/* Changes the header of a packet, or an entry of the index, into what is sent. */
void spool_change_packet(struct ky_ctf_packet *p, uint64_t expired_before, bool expired);
void spool_change_entry(struct ky_index_entry *e, uint64_t expired);

#endif
