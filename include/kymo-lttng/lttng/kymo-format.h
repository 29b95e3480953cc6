/* SPDX-License-Identifier: MIT */
/*
 * <lttng/tracef.h> and <lttng/tracelog.h> share this: an event whose last field is the text of a
 * message.
 */
#ifndef KYMO_LTTNG_FORMAT_H
#define KYMO_LTTNG_FORMAT_H

#pragma GCC system_header

#include <lttng/tracepoint.h>

/* clang-format off */
#define KYMO__LTTNG_MESSAGE_EVENT(provider, name, level, descs) \
	static const struct kymo_field kymo__fields[] = { \
		descs KYMO__DESC(kymo_text_seq(msg, 0, 0)) KYMO__NO_FIELD}; \
	KYMO__DEFINE_EVENT(provider, name, level, kymo__fields)
/* clang-format on */

#endif
