/* SPDX-License-Identifier: MIT */
/* A number of the CPU of the program's own, which Kymo does not take: it fails with -ENOSYS. */
#ifndef KYMO_LTTNG_UST_GETCPU_H
#define KYMO_LTTNG_UST_GETCPU_H

#pragma GCC system_header

#include <errno.h>

static inline int lttng_ust_getcpu_override(int (*getcpu)(void))
{
	(void)getcpu;
	return -ENOSYS;
}

#endif
