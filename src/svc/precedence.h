/* SPDX-License-Identifier: MIT */
/* A daemon's precedence over ordinary processes: a negative nice value. */
#ifndef SVC_PRECEDENCE_H
#define SVC_PRECEDENCE_H

#include <stdbool.h>

/*
 * Returns whether this process has precedence. It was started with it; or it is_wanted, the nice
 * value was 0, and the kernel permits the change. Keeps precedence from the processes that this one
 * will start; and extends it to its session (setsid) if that is its own.
 */
bool ky_precedence_init(bool is_wanted, bool own_session);

#endif
