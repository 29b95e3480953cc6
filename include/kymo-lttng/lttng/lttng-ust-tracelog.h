/* SPDX-License-Identifier: MIT */
#ifndef KYMO_LTTNG_LTTNG_UST_TRACELOG_H
#define KYMO_LTTNG_LTTNG_UST_TRACELOG_H

#include <lttng/tracelog.h>

#endif
