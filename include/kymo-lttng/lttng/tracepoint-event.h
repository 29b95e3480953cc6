/* SPDX-License-Identifier: MIT */
#pragma GCC system_header
/*
 * The end of a provider's header. If TRACEPOINT_CREATE_PROBES is defined, that header is read
 * again, and its macros make the events then. No guard: each provider's header includes it.
 */
#include <lttng/ust-api-compat.h>

/* clang-format off */
#if LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_CREATE_PROBES) && !defined(LTTNG_UST_TRACEPOINT_CREATE_PROBES)
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#endif

#ifdef LTTNG_UST_TRACEPOINT_CREATE_PROBES

#include <lttng/kymo-probe.h>

#if LTTNG_UST_COMPAT_API(0) && !defined(LTTNG_UST_TRACEPOINT_INCLUDE)
#if defined(TRACEPOINT_INCLUDE)
#define LTTNG_UST_TRACEPOINT_INCLUDE TRACEPOINT_INCLUDE
#elif defined(TRACEPOINT_INCLUDE_FILE) /* without quotes: up to LTTng-UST 2.12 */
#define LTTNG_UST_TRACEPOINT_INCLUDE KYMO__LTTNG_QUOTED(TRACEPOINT_INCLUDE_FILE)
#define KYMO__LTTNG_QUOTED(file) KYMO__LTTNG_QUOTED_(file)
#define KYMO__LTTNG_QUOTED_(file) #file
#endif
#endif
#if LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_PROVIDER) && !defined(LTTNG_UST_TRACEPOINT_PROVIDER)
#define LTTNG_UST_TRACEPOINT_PROVIDER TRACEPOINT_PROVIDER
#endif

#undef LTTNG_UST_TRACEPOINT_CREATE_PROBES /* the header ends with this file */
#if LTTNG_UST_COMPAT_API(0)
#undef TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_HEADER_MULTI_READ
#endif
#define LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ

/*
 * Read three times, because a class or an enumeration may follow its use: enumerations, classes,
 * events.
 */
#include <lttng/kymo-nothing.h>
#undef LTTNG_UST_TRACEPOINT_ENUM
#define LTTNG_UST_TRACEPOINT_ENUM(provider, name, values) KYMO__LTTNG_ENUM(provider, name, values)
#include LTTNG_UST_TRACEPOINT_INCLUDE

#include <lttng/kymo-nothing.h>
#undef LTTNG_UST_TRACEPOINT_EVENT
#define LTTNG_UST_TRACEPOINT_EVENT(provider, name, args, fields) KYMO__LTTNG_CLASS(provider, name, args, fields)
#undef LTTNG_UST_TRACEPOINT_EVENT_CLASS
#define LTTNG_UST_TRACEPOINT_EVENT_CLASS(provider, cls, args, fields) \
	KYMO__LTTNG_CLASS(provider, cls, args, fields) \
	KYMO__LTTNG_OTHER_ARGS(provider, cls)
#include LTTNG_UST_TRACEPOINT_INCLUDE

#include <lttng/kymo-nothing.h>
#undef LTTNG_UST_TRACEPOINT_EVENT
#define LTTNG_UST_TRACEPOINT_EVENT(provider, name, args, fields) KYMO__LTTNG_INSTANCE(provider, name, provider, name, args)
#undef LTTNG_UST_TRACEPOINT_EVENT_INSTANCE
#define LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cls_provider, cls, provider, name, args) \
	KYMO__LTTNG_INSTANCE(cls_provider, cls, provider, name, args)
#undef LTTNG_UST_TRACEPOINT_LOGLEVEL
#define LTTNG_UST_TRACEPOINT_LOGLEVEL(provider, name, level) KYMO__LTTNG_LOGLEVEL(provider, name, level)
#undef LTTNG_UST_TRACEPOINT_MODEL_EMF_URI
#define LTTNG_UST_TRACEPOINT_MODEL_EMF_URI(provider, name, uri) KYMO__LTTNG_MODEL_EMF_URI(provider, name, uri)
#include LTTNG_UST_TRACEPOINT_INCLUDE

#undef LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ
#if LTTNG_UST_COMPAT_API(0)
#undef TRACEPOINT_HEADER_MULTI_READ
#undef TRACEPOINT_INCLUDE
#undef TRACEPOINT_INCLUDE_FILE
#endif
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES

KYMO__C_BEGIN
extern const int KYMO__APPLY_CAT(kymo_lttng_provider_, LTTNG_UST_TRACEPOINT_PROVIDER) KYMO__LTTNG_PROVIDER_VISIBILITY;
const int KYMO__APPLY_CAT(kymo_lttng_provider_, LTTNG_UST_TRACEPOINT_PROVIDER) = 0;
KYMO__C_END

#include <lttng/kymo-declare.h>
#endif
/* clang-format on */
