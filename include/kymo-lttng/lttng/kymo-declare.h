/* SPDX-License-Identifier: MIT */
#pragma GCC system_header
/*
 * The macros of a provider's header, for files that use its tracepoints. Read again after each
 * provider's probes were made.
 */
/* clang-format off */
#include <lttng/kymo-nothing.h>
#undef LTTNG_UST_TRACEPOINT_EVENT
#define LTTNG_UST_TRACEPOINT_EVENT(provider, name, args, fields) \
	KYMO__LTTNG_DECLARE(provider, name, args) \
	KYMO__LTTNG_DEFINE(provider, name, args)
#undef LTTNG_UST_TRACEPOINT_EVENT_INSTANCE
#define LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cls_provider, cls, provider, name, args) \
	KYMO__LTTNG_DECLARE(provider, name, args) \
	KYMO__LTTNG_DEFINE(provider, name, args)
/* clang-format on */
