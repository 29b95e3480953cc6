/* SPDX-License-Identifier: MIT */
/* Clocks of traces, and UUIDs: what the parsers of metadata and the reader both need. */
#ifndef READER_TRACE_CLOCK_H
#define READER_TRACE_CLOCK_H

#include "base/util.h"

struct ky_trace_clock {
	const char *name;
	const char *description;
	const char *uuid; /* text, or NULL */
	uint64_t freq;	  /* Hz, not 0 */
	int64_t offset_s; /* seconds and cycles from the origin to value 0 */
	uint64_t offset;
	int64_t base_ns; /* both in nanoseconds; ky_trace_clock_prepare */
};

/* Computes base_ns from the other members. */
void ky_trace_clock_prepare(struct ky_trace_clock *c);
/* Returns whether 64 bits of nanoseconds cannot express where the clock begins. */
static inline bool ky_trace_clock_is_beyond(const struct ky_trace_clock *c)
{
	return c->base_ns == INT64_MAX || c->base_ns == INT64_MIN;
}
/*
 * Nanoseconds from the origin of the clock's value; saturates. Rounded as babeltrace2 does, which
 * goes through a double, so that both show the same time; exact if the clock counts nanoseconds.
 */
int64_t ky_trace_clock_ns(const struct ky_trace_clock *c, uint64_t value);
/* 16 bytes from "2a6422d0-6cee-11e0-8c08-cb07d7b3a564". */
bool ky_uuid_parse(uint8_t uuid[16], const char *text);

#endif
