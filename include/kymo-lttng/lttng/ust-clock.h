/* SPDX-License-Identifier: MIT */
/* The program's own clocks, which Kymo does not use: all these calls fail with -ENOSYS. */
#ifndef KYMO_LTTNG_UST_CLOCK_H
#define KYMO_LTTNG_UST_CLOCK_H

#pragma GCC system_header

#include <errno.h>
#include <stdint.h>

#define LTTNG_UST_UUID_STR_LEN 37

typedef uint64_t (*lttng_ust_clock_read64_function)(void);
typedef uint64_t (*lttng_ust_clock_freq_function)(void);
typedef int (*lttng_ust_clock_uuid_function)(char *uuid);
typedef const char *(*lttng_ust_clock_name_function)(void);
typedef const char *(*lttng_ust_clock_description_function)(void);

static inline int lttng_ust_trace_clock_set_read64_cb(lttng_ust_clock_read64_function callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_get_read64_cb(lttng_ust_clock_read64_function *callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_set_freq_cb(lttng_ust_clock_freq_function callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_get_freq_cb(lttng_ust_clock_freq_function *callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_set_uuid_cb(lttng_ust_clock_uuid_function callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_get_uuid_cb(lttng_ust_clock_uuid_function *callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_set_name_cb(lttng_ust_clock_name_function callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_get_name_cb(lttng_ust_clock_name_function *callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_set_description_cb(
	lttng_ust_clock_description_function callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_trace_clock_get_description_cb(
	lttng_ust_clock_description_function *callback)
{
	(void)callback;
	return -ENOSYS;
}

static inline int lttng_ust_enable_trace_clock_override(void)
{
	return -ENOSYS;
}

#endif
