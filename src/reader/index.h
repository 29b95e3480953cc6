/* SPDX-License-Identifier: MIT */
/*
 * The index of a stream: at which packets a walk may begin, and when these begin. It comes from
 * Kymo's index files where they agree with the stream files, and from the heads of packets
 * otherwise. Places are at least KY_PLACE_SIZE bytes apart.
 */
#ifndef READER_INDEX_H
#define READER_INDEX_H

#include "reader/stream.h"

#define KY_PLACE_SIZE ((uint64_t)64 << 10)

/* Makes the index of a stream that has none. One thread. 0 or -ENOMEM. */
int ky_index_build(struct ky_stream *s, struct ky_packets *packets);

#endif
