/* SPDX-License-Identifier: MIT */
/*
 * Chunks of a session that Kymo rotated. Each is a trace of its own, and each ring has a stream in
 * each chunk to which it recorded (docs/trace-format.md, "Chunks"). A rotation ends a chunk
 * anywhere in a ring, so the position in the ring shows whether a stream's first records are
 * missing.
 */
#ifndef READER_CHUNKS_H
#define READER_CHUNKS_H

#include "reader/stream.h"

/* Returns true if both traces are of one session, and of one kind of program (user, ABI). */
bool ky_chunks_are_of_session(const struct ky_trace *x, const struct ky_trace *y);
/*
 * Decides which streams continue the stream of the same ring in an earlier chunk, and makes the
 * index of those that are continued. Returns 0 or -ENOMEM.
 */
int ky_chunks_connect(struct ky_stream *const *streams, size_t n);

/*
 * Finds the packets at the begin of files that earlier files of the stream have, too: two snapshots
 * of one session that another tracer took. Such a file is read from the others on. Returns 0 or
 * -ENOMEM.
 */
int ky_chunks_skip_repeated(struct ky_stream *s, struct ky_packets *packets);

#endif
