/* SPDX-License-Identifier: MIT */
/* The newest version of LTTng-UST whose interface these headers have. */
#ifndef KYMO_LTTNG_UST_VERSION_H
#define KYMO_LTTNG_UST_VERSION_H

#pragma GCC system_header

#define LTTNG_UST_MAJOR_VERSION	     2
#define LTTNG_UST_MINOR_VERSION	     16
#define LTTNG_UST_PATCHLEVEL_VERSION 0
#define LTTNG_UST_VERSION	     "2.16.0"

#endif
