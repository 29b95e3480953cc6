/* SPDX-License-Identifier: MIT */
/*
 * Daemons check invariants while they run. A violated invariant is a fault of Kymo: the daemon logs
 * it and aborts, because its next actions could do harm. Other processes continue without it
 * (docs/recovery.md).
 *
 * Data from a peer, a client or a file is never checked this way: it could stop the daemon. The
 * library checks nothing this way, because it runs in other people's processes.
 */
#ifndef SVC_CHECK_H
#define SVC_CHECK_H

void ky_check_failed(const char *what, const char *file, int line) __attribute__((noreturn, cold));

#define KY_CHECK(what) ((what) ? (void)0 : ky_check_failed(#what, __FILE__, __LINE__))

#endif
