/* SPDX-License-Identifier: MIT */
/*
 * Programs that were written for LTTng-UST (2.7 to 2.16) and are compiled again: their tracepoint
 * providers, as lttng-ust(3) describes them, become events of Kymo. This header and those beside it
 * replace LTTng-UST's; `kymo-lttng.pc` has the flags. docs/lttng-compat.md of the sources lists
 * what is supported. New programs use <kymo/tracepoint.h>.
 *
 * The implementation: a tracepoint, its definition, and its event may be in three objects, which
 * may be loaded and unloaded separately, and find each other by name:
 *
 *	TRACEPOINT_EVENT	declares the tracepoint: a state, the symbol
 *				`kymo_lttng_PROVIDER___NAME`
 *	TRACEPOINT_DEFINE	defines that state, and lists it as a LINK (<kymo/types.h>)
 *	TRACEPOINT_CREATE_PROBES	makes the event: a table of fields, and a probe, which
 *				records; in <lttng/tracepoint-event.h>
 *
 * The tracer puts the address of the event's probe into the state, and tracepoints call it with
 * their arguments.
 *
 * All names exist in two spellings: that of version 0 of the interface (TRACEPOINT_EVENT,
 * ctf_integer, tracepoint) and that of version 1 (LTTNG_UST_TRACEPOINT_EVENT,
 * lttng_ust_field_integer, lttng_ust_tracepoint).
 */
#ifndef KYMO_LTTNG_TRACEPOINT_H
#define KYMO_LTTNG_TRACEPOINT_H

#pragma GCC system_header

/* Programs rely on these. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __has_include
#if __has_include(<urcu/compiler.h>)
#include <urcu/compiler.h>
#endif
#endif

#include <kymo/tracepoint.h>
#include <lttng/ust-api-compat.h>
#include <lttng/ust-compiler.h>

/* clang-format off */

/*
 * At most 32 arguments. Converts "int, a, char *, b" to "int a, char *b" and "a, b"; an empty list,
 * and the single word "void", mean no arguments.
 */
#define KYMO__LTTNG_COUNT(...) KYMO__LTTNG_COUNT_(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define KYMO__LTTNG_COUNT_(a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63, count, ...) count
#define KYMO__LTTNG_ARGS(form, args) KYMO__APPLY_CAT(KYMO__LTTNG_ARGS_, KYMO__LTTNG_COUNT args)(KYMO__LTTNG_##form, KYMO__LTTNG_NO_##form, KYMO__UNWRAP(args))
#define KYMO__LTTNG_ARGS_1(f, none, ...) KYMO__LTTNG_ARGS_0_(f, none, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_0_(f, none, a) none
#define KYMO__LTTNG_ARGS_2(f, none, ...) KYMO__LTTNG_ARGS_2_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_4(f, none, ...) KYMO__LTTNG_ARGS_4_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_6(f, none, ...) KYMO__LTTNG_ARGS_6_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_8(f, none, ...) KYMO__LTTNG_ARGS_8_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_10(f, none, ...) KYMO__LTTNG_ARGS_10_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_12(f, none, ...) KYMO__LTTNG_ARGS_12_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_14(f, none, ...) KYMO__LTTNG_ARGS_14_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_16(f, none, ...) KYMO__LTTNG_ARGS_16_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_18(f, none, ...) KYMO__LTTNG_ARGS_18_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_20(f, none, ...) KYMO__LTTNG_ARGS_20_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_22(f, none, ...) KYMO__LTTNG_ARGS_22_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_24(f, none, ...) KYMO__LTTNG_ARGS_24_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_26(f, none, ...) KYMO__LTTNG_ARGS_26_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_28(f, none, ...) KYMO__LTTNG_ARGS_28_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_30(f, none, ...) KYMO__LTTNG_ARGS_30_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_32(f, none, ...) KYMO__LTTNG_ARGS_32_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_34(f, none, ...) KYMO__LTTNG_ARGS_34_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_36(f, none, ...) KYMO__LTTNG_ARGS_36_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_38(f, none, ...) KYMO__LTTNG_ARGS_38_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_40(f, none, ...) KYMO__LTTNG_ARGS_40_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_42(f, none, ...) KYMO__LTTNG_ARGS_42_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_44(f, none, ...) KYMO__LTTNG_ARGS_44_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_46(f, none, ...) KYMO__LTTNG_ARGS_46_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_48(f, none, ...) KYMO__LTTNG_ARGS_48_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_50(f, none, ...) KYMO__LTTNG_ARGS_50_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_52(f, none, ...) KYMO__LTTNG_ARGS_52_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_54(f, none, ...) KYMO__LTTNG_ARGS_54_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_56(f, none, ...) KYMO__LTTNG_ARGS_56_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_58(f, none, ...) KYMO__LTTNG_ARGS_58_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_60(f, none, ...) KYMO__LTTNG_ARGS_60_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_62(f, none, ...) KYMO__LTTNG_ARGS_62_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_64(f, none, ...) KYMO__LTTNG_ARGS_64_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_2_(f, t, n) f##_LAST(t, n)
#define KYMO__LTTNG_ARGS_4_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_2_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_6_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_4_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_8_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_6_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_10_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_8_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_12_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_10_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_14_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_12_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_16_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_14_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_18_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_16_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_20_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_18_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_22_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_20_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_24_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_22_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_26_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_24_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_28_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_26_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_30_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_28_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_32_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_30_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_34_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_32_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_36_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_34_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_38_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_36_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_40_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_38_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_42_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_40_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_44_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_42_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_46_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_44_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_48_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_46_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_50_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_48_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_52_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_50_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_54_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_52_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_56_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_54_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_58_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_56_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_60_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_58_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_62_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_60_(f, __VA_ARGS__)
#define KYMO__LTTNG_ARGS_64_(f, t, n, ...) f(t, n), KYMO__LTTNG_ARGS_62_(f, __VA_ARGS__)
#define KYMO__LTTNG_PROTO(type, name) type name __attribute__((__unused__))
#define KYMO__LTTNG_PROTO_LAST(type, name) KYMO__LTTNG_PROTO(type, name)
#define KYMO__LTTNG_NO_PROTO void
#define KYMO__LTTNG_TYPE(type, name) type
#define KYMO__LTTNG_TYPE_LAST(type, name) type
#define KYMO__LTTNG_NO_TYPE void
#define KYMO__LTTNG_VALUE(type, name) name
#define KYMO__LTTNG_VALUE_LAST(type, name) name
#define KYMO__LTTNG_NO_VALUE

#define LTTNG_UST_TP_ARGS(...) (__VA_ARGS__)

#define KYMO__LTTNG_SIGNATURE(args) KYMO__LTTNG_SIGNATURE_(args)
#define KYMO__LTTNG_SIGNATURE_(args) #args

#define LTTNG_UST_TRACEPOINT_NAME_LEN_MAX 256

/*
 * A tracepoint's state. Some programs use names that LTTng-UST's macros make:
 * lttng_ust_tracepoint_PROVIDER___NAME.state, up to 2.12 __tracepoint_PROVIDER___NAME.state, and
 * lttng_ust_tracepoint_cb_PROVIDER___NAME(...), which records without looking at the state. The
 * symbol has another name: the same program may link with LTTng-UST's tracepoints.
 */
union KYMO__HIDDEN kymo__lttng_tracepoint {
	struct kymo_event_state kymo__state;
	int state; /* its first member: not 0 if enabled */
};

#define KYMO__LTTNG_DECLARE(provider, name, args) \
	KYMO__C_BEGIN \
	extern union kymo__lttng_tracepoint lttng_ust_tracepoint_##provider##___##name \
		__asm__("kymo_lttng_" #provider "___" #name) KYMO__LTTNG_VISIBILITY; \
	KYMO__C_END \
	static inline KYMO__QUIET KYMO__CALLS_OTHERS __attribute__((__always_inline__, __unused__)) void lttng_ust_tracepoint_cb_##provider##___##name(KYMO__LTTNG_ARGS(PROTO, args)) \
	{ \
		union { void *kymo__address; void (*kymo__probe)(KYMO__LTTNG_ARGS(TYPE, args)); } kymo__u; \
		kymo__u.kymo__address = kymo__lttng_hook(&lttng_ust_tracepoint_##provider##___##name.kymo__state); \
		if (kymo__u.kymo__address) \
			kymo__u.kymo__probe(KYMO__LTTNG_ARGS(VALUE, args)); \
	} \
	KYMO__LTTNG_DECLARE_0(provider, name)

#if LTTNG_UST_COMPAT_API(0)
#define KYMO__LTTNG_DECLARE_0(provider, name) \
	KYMO__C_BEGIN \
	extern union kymo__lttng_tracepoint __tracepoint_##provider##___##name \
		__asm__("kymo_lttng_" #provider "___" #name) KYMO__LTTNG_VISIBILITY; \
	KYMO__C_END
#else
#define KYMO__LTTNG_DECLARE_0(provider, name)
#endif

#if LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_DEFINE) && !defined(LTTNG_UST_TRACEPOINT_DEFINE)
#define LTTNG_UST_TRACEPOINT_DEFINE
#endif
#if LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_PROBE_DYNAMIC_LINKAGE) && !defined(LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE)
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#endif

#ifndef LTTNG_UST_TRACEPOINT_DEFINE
#define KYMO__LTTNG_DEFINE(provider, name, args)
#else
#ifdef LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#define KYMO__LTTNG_PROVIDER(provider) NULL
#else
#define KYMO__LTTNG_PROVIDER(provider) &kymo_lttng_provider_##provider
#endif
#define KYMO__LTTNG_DEFINE(provider, name, args) \
	KYMO__C_BEGIN \
	extern const int kymo_lttng_provider_##provider KYMO__LTTNG_PROVIDER_VISIBILITY; \
	union kymo__lttng_tracepoint lttng_ust_tracepoint_##provider##___##name KYMO__LTTNG_VISIBILITY = {{0, 0, NULL, NULL, NULL, NULL, NULL}}; \
	KYMO__C_END \
	static const struct kymo_link_event kymo__link_##provider##___##name = { \
		{(uint32_t)sizeof(struct kymo_event), KYMO_EVENT_LINK, 0, #provider, #name, NULL, \
			&lttng_ust_tracepoint_##provider##___##name.kymo__state, __FILE__, __LINE__, KYMO_EVENT_CHAINED}, \
		KYMO__LTTNG_PROVIDER(provider), KYMO__LTTNG_SIGNATURE(args)}; \
	static const struct kymo_event *lttng_ust_tracepoint_ptr_##provider##___##name \
		KYMO__IN_LIST = &kymo__link_##provider##___##name.event;
#endif

/*
 * Probes for SystemTap, with at most 12 arguments, if a program requests them, as LTTng-UST has
 * when it is built for them.
 */
#ifdef LTTNG_UST_HAVE_SDT_INTEGRATION
#include <sys/sdt.h>
#define KYMO__LTTNG_SDT(provider, ...) KYMO__APPLY_CAT(KYMO__LTTNG_SDT, KYMO__MANY(__VA_ARGS__))(provider, __VA_ARGS__)
#define KYMO__LTTNG_SDT_ONE(provider, name) _SDT_PROBE(provider, name, 0, ());
#define KYMO__LTTNG_SDT_MORE(provider, name, ...) KYMO__LTTNG_SDT_N(provider, name, KYMO__COUNT(__VA_ARGS__), (__VA_ARGS__))
#define KYMO__LTTNG_SDT_N(provider, name, n, args) _SDT_PROBE(provider, name, n, args);
#else
#define KYMO__LTTNG_SDT(...)
#endif

#define lttng_ust_tracepoint_enabled(provider, name) KYMO__LTTNG_ENABLED(provider, name)
#define lttng_ust_do_tracepoint(provider, ...) \
	KYMO__APPLY_CAT(KYMO__LTTNG_CALL, KYMO__MANY(__VA_ARGS__))(provider, __VA_ARGS__)
#define lttng_ust_tracepoint(provider, ...) \
	do { \
		KYMO__LTTNG_SDT(provider, __VA_ARGS__) \
		if (KYMO__LTTNG_ENABLED(provider, KYMO__FIRST_TOKEN(__VA_ARGS__, 0))) \
			KYMO__APPLY_CAT(KYMO__LTTNG_CALL, KYMO__MANY(__VA_ARGS__))(provider, __VA_ARGS__); \
	} while (0)
#define KYMO__LTTNG_ENABLED(provider, name) KYMO__LTTNG_ENABLED_(provider, name)
#define KYMO__LTTNG_ENABLED_(provider, name) kymo__lttng_is_enabled(&lttng_ust_tracepoint_##provider##___##name.kymo__state)
#define KYMO__LTTNG_CALL_ONE(provider, name) lttng_ust_tracepoint_cb_##provider##___##name()
#define KYMO__LTTNG_CALL_MORE(provider, name, ...) lttng_ust_tracepoint_cb_##provider##___##name(__VA_ARGS__)

enum {
	LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG = KYMO_EMERG,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_ALERT = KYMO_ALERT,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_CRIT = KYMO_CRIT,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_ERR = KYMO_ERR,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING = KYMO_WARNING,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_NOTICE = KYMO_NOTICE,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO = KYMO_INFO,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_SYSTEM = KYMO_DEBUG_SYSTEM,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROGRAM = KYMO_DEBUG_PROGRAM,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_PROCESS = KYMO_DEBUG_PROCESS,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_MODULE = KYMO_DEBUG_MODULE,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_UNIT = KYMO_DEBUG_UNIT,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_FUNCTION = KYMO_DEBUG_FUNCTION,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG_LINE = KYMO_DEBUG_LINE,
	LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG = KYMO_DEBUG
};

#if LTTNG_UST_COMPAT_API(0)
/* No macros: tracelog(TRACE_INFO, ...) makes a name from it. */
enum {
	TRACE_EMERG = KYMO_EMERG,
	TRACE_ALERT = KYMO_ALERT,
	TRACE_CRIT = KYMO_CRIT,
	TRACE_ERR = KYMO_ERR,
	TRACE_WARNING = KYMO_WARNING,
	TRACE_NOTICE = KYMO_NOTICE,
	TRACE_INFO = KYMO_INFO,
	TRACE_DEBUG_SYSTEM = KYMO_DEBUG_SYSTEM,
	TRACE_DEBUG_PROGRAM = KYMO_DEBUG_PROGRAM,
	TRACE_DEBUG_PROCESS = KYMO_DEBUG_PROCESS,
	TRACE_DEBUG_MODULE = KYMO_DEBUG_MODULE,
	TRACE_DEBUG_UNIT = KYMO_DEBUG_UNIT,
	TRACE_DEBUG_FUNCTION = KYMO_DEBUG_FUNCTION,
	TRACE_DEBUG_LINE = KYMO_DEBUG_LINE,
	TRACE_DEBUG = KYMO_DEBUG
};
#define tracepoint lttng_ust_tracepoint
#define do_tracepoint lttng_ust_do_tracepoint
#define tracepoint_enabled lttng_ust_tracepoint_enabled
#define TP_ARGS LTTNG_UST_TP_ARGS
#define TRACEPOINT_ENUM LTTNG_UST_TRACEPOINT_ENUM
#define TRACEPOINT_EVENT LTTNG_UST_TRACEPOINT_EVENT
#define TRACEPOINT_EVENT_CLASS LTTNG_UST_TRACEPOINT_EVENT_CLASS
#define TRACEPOINT_EVENT_INSTANCE(provider, cls, name, args) \
	LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(provider, cls, provider, name, args)
#define TRACEPOINT_LOGLEVEL LTTNG_UST_TRACEPOINT_LOGLEVEL
#define TRACEPOINT_MODEL_EMF_URI LTTNG_UST_TRACEPOINT_MODEL_EMF_URI
#endif

/* Functions: programs have macros with names like those of the structure's members. */
static inline KYMO__QUIET __attribute__((__always_inline__)) int kymo__lttng_is_enabled(const struct kymo_event_state *state)
{
	return KYMO__IS_ENABLED(*state);
}

static inline KYMO__QUIET __attribute__((__always_inline__)) void *kymo__lttng_hook(const struct kymo_event_state *state)
{
	return __atomic_load_n(&state->hook, __ATOMIC_RELAXED);
}

/* LTTng-UST's destructors of tracepoints, which programs switch off before they end quickly. */
static inline void lttng_ust_tracepoint_disable_destructors(void)
{
}

static inline void tracepoint_disable_destructors(void)
{
}

/*
 * The macros for a file that uses tracepoints when it reads a provider's header;
 * <lttng/tracepoint-event.h> has others.
 */
#include <lttng/kymo-declare.h>

/* clang-format on */

#endif

/* Reset for each provider's header: programs define these before it. */
#undef KYMO__LTTNG_VISIBILITY
#if defined(LTTNG_UST_TRACEPOINT_HIDDEN_DEFINITION) ||                                             \
	(LTTNG_UST_COMPAT_API(0) && defined(TRACEPOINT_HIDDEN_DEFINITION))
#define KYMO__LTTNG_VISIBILITY __attribute__((__visibility__("hidden")))
#else
#define KYMO__LTTNG_VISIBILITY __attribute__((__visibility__("default")))
#endif
#undef KYMO__LTTNG_PROVIDER_VISIBILITY
#ifdef LTTNG_UST_TRACEPOINT_PROVIDER_HIDDEN_DEFINITION
#define KYMO__LTTNG_PROVIDER_VISIBILITY __attribute__((__visibility__("hidden")))
#else
#define KYMO__LTTNG_PROVIDER_VISIBILITY __attribute__((__visibility__("default")))
#endif
