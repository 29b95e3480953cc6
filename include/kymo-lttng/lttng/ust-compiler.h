/* SPDX-License-Identifier: MIT */
/* The part of LTTng-UST's header of this name that programs use. */
#ifndef KYMO_LTTNG_UST_COMPILER_H
#define KYMO_LTTNG_UST_COMPILER_H

#pragma GCC system_header

#include <assert.h>

#define lttng_ust_notrace __attribute__((__no_instrument_function__))

#ifdef __cplusplus
#define lttng_ust_static_assert(predicate, msg, c_identifier_msg) static_assert(predicate, msg)
#else
#define lttng_ust_static_assert(predicate, msg, c_identifier_msg)                                  \
	__extension__ _Static_assert(predicate, msg)
#endif

#endif
