/* SPDX-License-Identifier: MIT */
#ifndef KYMO_LTTNG_TP_LTTNG_UST_TRACELOG_H
#define KYMO_LTTNG_TP_LTTNG_UST_TRACELOG_H

#pragma GCC system_header

#include <lttng/tracelog.h>

#endif
