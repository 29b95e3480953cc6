/* SPDX-License-Identifier: MIT */
/*
 * The contexts of a channel: what users write, checked, and kept in the order that records have them in.
 */
#ifndef SESSIOND_MODEL_CONTEXT_H
#define SESSIOND_MODEL_CONTEXT_H

#include "proto/context.h"
#include "sessiond/model/channel.h"

/*
 * Understands "vpid", "perf:thread:page-faults", "$app.provider:name", "callstack:32". 0; or -EINVAL, with one line in
 * why: what is wrong, and what was probably meant. Pure.
 */
int context_parse(struct ky_context *ret_context, const char *spec, char *why, size_t why_size);
/* Can this machine count it? 0, or -errno with a line in why; other contexts always can be had. */
int context_probe(const struct ky_context *c, char *why, size_t why_size);

/* Is it this counter, as in struct perf_event_attr? */
bool context_is_counter(const struct ky_context *c, uint32_t type, uint64_t config);
/* One line: why perf_event_open failed with this errno for somebody, and what to do. */
void context_explain_uncounted(int error, char *why, size_t why_size);

/* The channel's context of that name in records, or NULL. */
const struct ky_context *channel_context(const struct channel *c, const char *name);
/* Could the channel have these too? 0, or -EDQUOT: they would be too many, or too large. */
int channel_check_contexts(const struct channel *c, const struct ky_context *contexts, size_t n);
/* Adds those that the channel does not have behind the others: all or none. -EDQUOT as above; -ENOMEM. */
int channel_add_contexts(struct channel *c, const struct ky_context *contexts, size_t n);
/* Events that were described before the channel had all its contexts: they get them when the session starts again. */
unsigned channel_count_older(const struct channel *c);
/* Appends { u32 kind, str argument } for each. */
void contexts_encode(struct ky_writer *w, const struct channel *c);

#endif
