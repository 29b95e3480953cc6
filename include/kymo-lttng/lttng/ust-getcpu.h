/* SPDX-License-Identifier: MIT */
/* The program's own CPU number, which Kymo does not use: the call fails with -ENOSYS. */
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
