/* SPDX-License-Identifier: MIT */
/*
 * Writes the trace of a session whose buffers are files (svc/shm-dir.h) after all its processes
 * died: `kymo recover`. It is a consumer that reads its requests from a file, into which the
 * session daemon wrote them. There are two cases:
 *
 * - It writes into the session's own trace. It continues as the next consumer would have, behind
 *   the packets that were written. It adds what the buffers of channels in overwrite mode hold.
 *   When all is written, it empties the directory; the caller removes the directory itself.
 * - It writes elsewhere, as a snapshot, all that the buffers hold. This needs only buffers and
 *   their descriptions, and changes nothing of what it reads. So it also works with a copy, or
 *   while the session is active.
 *
 * It is confined as any consumer (confine.h) before it reads buffers: to the trace and, in the
 * first case, the directory. Everything in the directory may be damaged, a copy made at any moment,
 * or another session's. The recovery leaves out what makes no sense, and reports it.
 */
#ifndef CONSUMERD_RECOVERY_H
#define CONSUMERD_RECOVERY_H

#include "proto/consumer.h"
#include "ring/geometry.h"

/*
 * Recovers the session in `path`. output: absolute path of the new trace; NULL: the session's own.
 * Prints a summary on stdout. Returns the process's exit status.
 */
int recovery_run(const char *path, const char *output);

/* --- parsers, public for tests --- */

/*
 * Finds the message at *pos in the contents of DIR/session, and moves *pos behind it. Returns its
 * length, or 0 if there is no complete message.
 */
size_t recovery_next_message(const uint8_t *bytes, size_t size, size_t *pos);
/* Returns true if a file of buffers with this header belongs to this set. */
bool recovery_header_matches(const struct ky_set_header *h, const struct ky_cons_ring_set *m,
	struct ky_geometry *ret_geometry);
/*
 * Returns the length of the complete descriptions at the begin of a metadata log. Returns 0 if the
 * text is no log of this trace, or does not describe the stream.
 */
size_t recovery_whole_text(const char *text, size_t size, const char *uuid, uint32_t stream);

#endif
