/* SPDX-License-Identifier: MIT */
/*
 * What LTTng-UST of one version or another takes, but not 2.13: files without quotes, BLOBs, more
 * than ten arguments, the names that its macros make.
 */
#include <stdint.h>

#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER extended

#undef TRACEPOINT_INCLUDE_FILE
/* clang-format off */
#define TRACEPOINT_INCLUDE_FILE ./extended-tp.h
/* clang-format on */

#if !defined(EXTENDED_TP_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define EXTENDED_TP_H

#include <lttng/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(extended, blobs, TP_ARGS(const uint8_t *, p, size_t, n), TP_FIELDS(
	lttng_ust_field_fixed_length_blob(fixed, p, 4, NULL)
	lttng_ust_field_variable_length_blob(any, p, size_t, n, "image/png")
	lttng_ust_field_fixed_length_blob_nowrite(aside, p, 4, NULL)
	lttng_ust_field_variable_length_blob_nowrite(aside2, p, size_t, n, NULL)))
TRACEPOINT_EVENT(extended, twelve, TP_ARGS(int, a0, int, a1, int, a2, int, a3, int, a4, int, a5, int, a6, int, a7, int, a8, int, a9, int, a10, int, a11),
	TP_FIELDS(ctf_integer(int, first, a0) ctf_integer(int, last, a11)))
TRACEPOINT_EVENT(extended, thirty_two, TP_ARGS(int, a0, int, a1, int, a2, int, a3, int, a4, int, a5, int, a6, int, a7, int, a8, int, a9, int, a10, int, a11, int, a12, int, a13, int, a14, int, a15, int, a16, int, a17, int, a18, int, a19, int, a20, int, a21, int, a22, int, a23, int, a24, int, a25, int, a26, int, a27, int, a28, int, a29, int, a30, int, a31),
	TP_FIELDS(ctf_integer(int, first, a0) ctf_integer(int, last, a31)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
