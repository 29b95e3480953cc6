/* SPDX-License-Identifier: MIT */
/*
 * Makes the metadata text (TSDL, CTF 1.8) of a trace, which docs/trace-format.md describes. The
 * session daemon appends the text to a metadata log; it never removes any.
 *
 * These functions escape every string from a program, so no description can corrupt the text.
 */
#ifndef CTF_TSDL_H
#define CTF_TSDL_H

#include "base/buf.h"
#include "base/clock.h"
#include "proto/context.h"
#include "proto/desc.h"

struct ky_tsdl_trace {
	uint8_t uuid[16];
	const char *hostname, *session;
	const char *boot_id;		       /* as the kernel spells it; the clock's UUID */
	const char *machine_id, *product_uuid; /* "" where they are not known */
	uint32_t uid, abi_bits;
	bool kernel; /* the kernel's events: the environment is as readers of these expect it */
	struct ky_clock_info clock;
	/* For readers that merge traces of several boots. Else they merge those of one boot. */
	bool absolute_clock;
};

/* All append to b; errors are b's. */

/* Appends the first part of a metadata file: trace, environment, clock, types. */
void ky_tsdl_trace(struct ky_buf *b, const struct ky_tsdl_trace *t);
/*
 * Appends a stream class. mode: enum ky_set_mode. named: packets of a thread's ring have the
 * name of the thread.
 */
void ky_tsdl_stream(struct ky_buf *b, uint32_t stream_id, uint32_t mode, bool named);
/*
 * Appends an event class. desc: a checked description (ky_desc_check). Without a provider, as
 * kernel events are, it has no level. contexts: the contexts at the begin of each record.
 */
void ky_tsdl_event(struct ky_buf *b, uint32_t stream_id, uint32_t id, struct ky_bytes desc,
	const struct ky_context *contexts, uint32_t n_contexts);

/*
 * Appends a comment of one line. Nothing in the text ends it. gap: it reports events that are
 * missing, and readers show it as a warning.
 */
#define KY_TSDL_GAP "/* gap: "
void ky_tsdl_comment(struct ky_buf *b, const char *text, bool gap);

#endif
