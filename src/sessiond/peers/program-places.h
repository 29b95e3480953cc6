/* SPDX-License-Identifier: MIT */
/*
 * Places of programs for the kernel's probes, as a member of the daemon's group may have them. A
 * probe changes what all users of the file execute, so no word of the member's is believed:
 *
 *  - A child opens the file with the member's rights, without magic links and not on FUSE, so the
 *    member may read it, and it is on no file system that the member serves.
 *  - The child reports which file it has opened before it reads any byte of it. Then it looks for
 *    the function or the SDT probe. A hostile file can only mislead it about that file, which its
 *    author controls anyway.
 *  - The place is the begin of a function or that of an SDT probe, in the file's own tables. The
 *    member's request has a name, and no offset.
 *  - When the probe is defined, the path must still lead to the file with the same contents: the
 *    kernel gets the open file (kernel/probes.h).
 *
 * The child has no descriptor and no right of the daemon.
 */
#ifndef SESSIOND_PEERS_PROGRAM_PLACES_H
#define SESSIOND_PEERS_PROGRAM_PLACES_H

#include "base/buf.h"
#include "svc/unix.h"

/*
 * Appends the lines that define the events of a place: "/PATH:SYMBOL" or "sdt:/PATH:PROVIDER:NAME".
 * Waits a moment for the child. Returns 0, or -errno with one line in why.
 */
int program_places(struct ky_buf *lines, const struct ky_peer *peer, const char *place,
	const char *name, char *why, size_t why_size);

#endif
