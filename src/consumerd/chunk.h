/* SPDX-License-Identifier: MIT */
/*
 * A chunk is the part of the trace between two ROTATEs. Its end has one point of no return: the
 * consumer renames the chunk's directory. Before that, it makes a slot for the next chunk for each
 * stream (abi/resume.h). Afterwards, it stores the chunk's number in the session's memory. If the
 * consumer dies between the two, its successor sees that slots are ready and that the directory
 * does not exist.
 */
#ifndef CONSUMERD_CHUNK_H
#define CONSUMERD_CHUNK_H

#include "consumerd/state.h"

/*
 * Ends the chunk and begins the next. archive "": discards the chunk. On an error, the present
 * chunk continues. Returns 0 or -errno; -ENODATA: the chunk has no packets.
 */
int chunk_rotate(struct consumerd *c, const char *archive);
/* Completes a rotation if the previous consumer died after it had moved the chunk. */
void chunk_resume(struct consumerd *c);

#endif
