/* SPDX-License-Identifier: MIT */
/* A listening socket at an address that a user has written. */
#ifndef BASE_LISTEN_H
#define BASE_LISTEN_H

#include <sys/socket.h>

/*
 * Listens at "ADDRESS:PORT", "[ADDRESS]:PORT", or "PORT" of 127.0.0.1; addresses are numbers, and
 * port 0 is any free one. Returns the socket, -EINVAL for a bad address, or the error of listening.
 */
int ky_listen(const char *where, struct sockaddr_storage *ret_address);

#endif
