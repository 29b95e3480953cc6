/* SPDX-License-Identifier: MIT */
#ifndef KYMO_LTTNG_LTTNG_UST_TRACEF_H
#define KYMO_LTTNG_LTTNG_UST_TRACEF_H

#pragma GCC system_header

#include <lttng/tracef.h>

#endif
