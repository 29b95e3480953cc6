/* SPDX-License-Identifier: MIT */
/* The probes of lttng-events.h for LTTng-UST, linked into the program that records. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-events.h"
