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
 * The child has no descriptor and no right of the daemon, and the daemon does not wait for it: the
 * file's disk may never answer.
 */
#ifndef SESSIOND_PEERS_PROGRAM_PLACES_H
#define SESSIOND_PEERS_PROGRAM_PLACES_H

#include "sessiond/model/op.h"
#include "svc/unix.h"

struct peers;

/*
 * Looks for a place: "/PATH:SYMBOL" or "sdt:/PATH:PROVIDER:NAME". Completes the op when the child
 * has answered or its time is over; the message is then the lines that define events of this name.
 * Returns 0, or -errno with one line in why: -EBUSY if the user, or all users, have too many
 * children that look or cannot be killed.
 */
int program_places_find(struct peers *p, const struct ky_peer *peer, const char *place,
	const char *name, struct op *op, char *why, size_t why_size);
/* Handles SIGCHLD: forgets children that have ended. */
void program_places_reap(struct peers *p);
/* The daemon ends: kills the children. */
void program_places_cancel(struct peers *p);

#endif
