/* SPDX-License-Identifier: MIT */
/*
 * Invariants that daemons check while they run. One that does not hold is a mistake of ours: the daemon logs it and aborts,
 * because what it would do next is not known to be harmless. Others go on without it (docs/recovery.md).
 *
 * Data from a peer, a client or a file is never checked this way: it could stop the daemon. The library in other people's
 * processes checks nothing this way.
 */
#ifndef SVC_CHECK_H
#define SVC_CHECK_H

void ky_check_failed(const char *what, const char *file, int line) __attribute__((noreturn, cold));

#define KY_CHECK(what) ((what) ? (void)0 : ky_check_failed(#what, __FILE__, __LINE__))

#endif
