/* SPDX-License-Identifier: MIT */
/* The version of LTTng-UST whose interface these headers have. */
#ifndef KYMO_LTTNG_UST_VERSION_H
#define KYMO_LTTNG_UST_VERSION_H

#pragma GCC system_header

#define LTTNG_UST_MAJOR_VERSION	     2
#define LTTNG_UST_MINOR_VERSION	     13
#define LTTNG_UST_PATCHLEVEL_VERSION 0
#define LTTNG_UST_VERSION	     "2.13.0"

#endif
