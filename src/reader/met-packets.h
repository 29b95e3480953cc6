/* SPDX-License-Identifier: MIT */
/*
 * Packets that a stream has twice: a file that was appended to itself, a copy beside the original,
 * a block that a file system has in two places. Such a packet has the number of an earlier one, and
 * all of its bytes. (Numbers may begin anew, and then the bytes differ.) For walk-packets.c.
 */
#ifndef READER_MET_PACKETS_H
#define READER_MET_PACKETS_H

#include "reader/stream.h"

/* A packet that a walk has met. */
struct ky_met_packet {
	uint64_t number, offset, n_bytes; /* n_bytes: 0: none */
	size_t file;
};

/* The last KY_MET_PACKETS_MAX packets, each at the place that its number has. */
struct ky_met_packets {
	struct ky_met_packet *v; /* owned */
	size_t cap, n;		 /* cap: 0, or a power of two */
};

#define KY_MET_PACKETS_MAX ((size_t)16 << 10)

/*
 * Returns 1 if an earlier packet of the stream has this one's number and bytes. Otherwise keeps
 * this one, and returns 0, or -ENOMEM. Reads no more than the packet has.
 */
int ky_met_packets_add(
	struct ky_met_packets *r, const struct ky_stream *s, const struct ky_met_packet *p);
void ky_met_packets_deinit(struct ky_met_packets *r);

#endif
