/* SPDX-License-Identifier: MIT */
/*
 * The header of LTTng-UST 2.0 to 2.12, later replaced by <lttng/ust-fork.h> and
 * <lttng/ust-thread.h>.
 */
#ifndef KYMO_LTTNG_UST_H
#define KYMO_LTTNG_UST_H

#pragma GCC system_header

#include <lttng/ust-fork.h>
#include <lttng/ust-thread.h>

/* The names of versions before 2.13. */
#define ust_before_fork	      lttng_ust_before_fork
#define ust_after_fork_parent lttng_ust_after_fork_parent
#define ust_after_fork_child  lttng_ust_after_fork_child
#define ust_after_setns	      lttng_ust_after_setns
#define ust_after_unshare     lttng_ust_after_unshare
#define ust_after_setuid      lttng_ust_after_setuid
#define ust_after_setgid      lttng_ust_after_setgid
#define ust_after_seteuid     lttng_ust_after_seteuid
#define ust_after_setegid     lttng_ust_after_setegid
#define ust_after_setreuid    lttng_ust_after_setreuid
#define ust_after_setregid    lttng_ust_after_setregid
#define ust_after_setresuid   lttng_ust_after_setresuid
#define ust_after_setresgid   lttng_ust_after_setresgid

#endif
