/* SPDX-License-Identifier: MIT */
/*
 * The precedence over ordinary processes that a daemon may have been started with: a negative nice
 * value.
 */
#ifndef SVC_PRECEDENCE_H
#define SVC_PRECEDENCE_H

#include <stdbool.h>

/*
 * Returns whether this process has precedence. Keeps it from the processes that it will start; and
 * extends it to its session (setsid) if that is its own.
 */
bool ky_precedence_keep(bool own_session);

#endif
