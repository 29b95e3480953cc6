/* SPDX-License-Identifier: MIT */
/*
 * LTTNG_UST_COMPAT_API_VERSION: the oldest version of the interface whose names a program requests;
 * 0 if it does not define it.
 */
#ifndef KYMO_LTTNG_UST_API_COMPAT_H
#define KYMO_LTTNG_UST_API_COMPAT_H

#pragma GCC system_header

#ifndef LTTNG_UST_COMPAT_API_VERSION
#define LTTNG_UST_COMPAT_API_VERSION 0
#endif
#define LTTNG_UST_COMPAT_API(version) (LTTNG_UST_COMPAT_API_VERSION <= (version))

#endif
