/* SPDX-License-Identifier: MIT */
/*
 * Writes the trace of a session whose buffers are files (svc/shm-dir.h) when nobody is left who would: `kymo recover`. It is a
 * consumer that takes its orders from a file, where the session daemon has written them down:
 *
 * - into the session's own trace: goes on as the next consumer would have, behind what was written; of channels in overwrite mode,
 *   it adds what their buffers hold. The directory is emptied when all of it is written; it itself is the caller's to remove.
 * - elsewhere: as a snapshot, all that the buffers hold. That needs no more than buffers and their descriptions, and changes nothing
 *   of what it reads; so it is also what can be done with a copy, or while the session goes on.
 *
 * It is confined as any consumer (confine.h), to the trace and, in the first case, the directory, before it looks at buffers. Everything in
 * the directory may be damaged, a copy of it made at any moment, or another's: what makes no sense is left out, and told.
 */
#ifndef CONSUMERD_RECOVERY_H
#define CONSUMERD_RECOVERY_H

#include "proto/consumer.h"
#include "ring/geometry.h"

/* output: absolute path of the new trace; NULL: the session's. Says on stdout what there was. Returns the process's exit status. */
int recovery_run(const char *path, const char *output);

/* --- what is parsed, for tests --- */

/* The message at *pos of what DIR/session holds; *pos is behind it then. Its length, or 0 when there is none whole. */
size_t recovery_next_message(const uint8_t *bytes, size_t size, size_t *pos);
/* Does a file of buffers that begins so belong to this set? */
bool recovery_header_fits(const struct ky_set_header *h, const struct ky_cons_ring_set *m,
	struct ky_geometry *ret_geometry);
/* Length of the whole descriptions that a metadata log of this trace begins with; 0: it is none, or the stream's is not there. */
size_t recovery_whole_text(const char *text, size_t size, const char *uuid, uint32_t stream);

#endif
