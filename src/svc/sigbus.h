/* SPDX-License-Identifier: MIT */
/*
 * Keeps a daemon alive if others shorten a file that it has mapped, or if a disk cannot read a page
 * of it. An access to the missing memory finds zeros, as in a ring that was never used. The readers
 * of such memory check what they read anyway.
 */
#ifndef SVC_SIGBUS_H
#define SVC_SIGBUS_H

/* Handles SIGBUS for all mappings of the process, from now on. */
void ky_sigbus_survive(void);

#endif
