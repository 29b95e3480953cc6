/* SPDX-License-Identifier: MIT */
/* What LTTng-UST makes of lttng-events.h: the probes, linked into the program that records. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-events.h"
