/* SPDX-License-Identifier: MIT */
/* A library with a provider and tracepoints of its own, which no other object knows. */
#define TRACEPOINT_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION
#define LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "parts-tp.h"

#include "more-tp.h"

#ifdef __cplusplus
extern "C"
#endif
	void
	plugin_run(void);

void plugin_run(void)
{
	tracepoint(parts, value, 7, "plugin");
	lttng_ust_tracepoint(parts_more, value, 0.25);
}
