/* SPDX-License-Identifier: MIT */
/*
 * The connection to the session daemon. If the daemon dies, the consumer continues to drain, and
 * tries to connect until a successor replies. It passes the descriptors of all ring sets to the
 * successor (kept.h). See docs/recovery.md.
 */
#ifndef CONSUMERD_CONNECTION_H
#define CONSUMERD_CONNECTION_H

#include "consumerd/state.h"

void connection_init(struct consumerd *c);
void connection_deinit(struct consumerd *c);
/*
 * Connects to a daemon by the socket fd (non-blocking, close-on-exec). Takes fd. Returns 0 or
 * -errno.
 */
int connection_open(struct consumerd *c, int fd);

/* Writes all records, and ends the consumer, whether the daemon lives or not. Logs why. */
void connection_finish(struct consumerd *c, const char *why);

#endif
