/* SPDX-License-Identifier: MIT */
/*
 * Memory that others can shorten, or a disk cannot bring back, must not end a daemon: an access to what is not there any
 * more finds zeros, as in a ring that was never used. Who looks at such memory checks what it reads anyway.
 */
#ifndef SVC_SIGBUS_H
#define SVC_SIGBUS_H

/* For all mappings of the process, from now on. */
void ky_sigbus_survive(void);

#endif
