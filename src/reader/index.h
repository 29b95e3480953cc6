/* SPDX-License-Identifier: MIT */
/*
 * The index of a stream: at which packets a walk may begin, and when these begin. It comes from the
 * index files of Kymo and of LTTng if they agree with the stream files, and from the heads of
 * packets otherwise. Places are at least KY_PLACE_SIZE bytes apart.
 */
#ifndef READER_INDEX_H
#define READER_INDEX_H

#include "reader/stream.h"

#define KY_PLACE_SIZE ((uint64_t)64 << 10)

/*
 * Makes the index of a stream, or extends it if its files have grown. is_growing: sets the size of
 * each file to the end of its last whole packet; a file that is damaged is read to its end. One
 * thread. Returns 0 or -ENOMEM.
 */
int ky_index_build(struct ky_stream *s, bool is_growing, struct ky_packets *packets);
/*
 * Reads the times of a stream that has an index, as far as they are not in the heads of packets:
 * of the events of the last packet, or of all if heads have no beginning. Events that were read
 * before are not read again. n_classes: of events, in all traces. Returns 0 or -ENOMEM.
 */
int ky_index_read_times(struct ky_stream *s, size_t n_classes, struct ky_packets *packets);

#endif
