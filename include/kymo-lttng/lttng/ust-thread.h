/* SPDX-License-Identifier: MIT */
/*
 * A call that LTTng-UST requires in threads whose first event is in a signal handler. Kymo does not
 * need it: the call does nothing.
 */
#ifndef KYMO_LTTNG_UST_THREAD_H
#define KYMO_LTTNG_UST_THREAD_H

#pragma GCC system_header

static inline void lttng_ust_init_thread(void)
{
}

#endif
