/* SPDX-License-Identifier: MIT */
/*
 * Calls that LTTng-UST requires around clone() and similar calls. Kymo detects these by itself: the
 * calls do nothing.
 */
#ifndef KYMO_LTTNG_UST_FORK_H
#define KYMO_LTTNG_UST_FORK_H

#pragma GCC system_header

#include <signal.h> /* programs have a sigset_t from here */

static inline void lttng_ust_before_fork(void *set)
{
	(void)set;
}

static inline void lttng_ust_after_fork_parent(void *set)
{
	(void)set;
}

static inline void lttng_ust_after_fork_child(void *set)
{
	(void)set;
}

static inline void lttng_ust_after_setns(void)
{
}

static inline void lttng_ust_after_unshare(void)
{
}

static inline void lttng_ust_after_setuid(void)
{
}

static inline void lttng_ust_after_setgid(void)
{
}

static inline void lttng_ust_after_seteuid(void)
{
}

static inline void lttng_ust_after_setegid(void)
{
}

static inline void lttng_ust_after_setreuid(void)
{
}

static inline void lttng_ust_after_setregid(void)
{
}

static inline void lttng_ust_after_setresuid(void)
{
}

static inline void lttng_ust_after_setresgid(void)
{
}

#endif
