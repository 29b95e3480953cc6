/* SPDX-License-Identifier: MIT */
/*
 * The contexts of a channel: parses and checks them as users write them, and keeps them in the
 * order that records have them in.
 */
#ifndef SESSIOND_MODEL_CONTEXT_H
#define SESSIOND_MODEL_CONTEXT_H

#include "proto/context.h"
#include "sessiond/model/channel.h"

/*
 * Parses "vpid", "perf:thread:page-faults", "$app.provider:name", "callstack:32". Pure. Returns 0;
 * or -EINVAL with one line in why: the fault, and the context that was probably meant.
 */
int context_parse(struct ky_context *ret_context, const char *spec, char *why, size_t why_size);
/*
 * Checks whether this machine can count it. Returns 0, or -errno with a line in why. Other contexts
 * are always available.
 */
int context_probe(const struct ky_context *c, char *why, size_t why_size);

/* Returns whether it is this counter, as in struct perf_event_attr. */
bool context_is_counter(const struct ky_context *c, uint32_t type, uint64_t config);
/*
 * Writes one line: why perf_event_open failed with this errno for an application, and the remedy.
 */
void context_explain_uncounted(int error, char *why, size_t why_size);

/* Returns the channel's context of that name in records, or NULL. */
const struct ky_context *channel_context(const struct channel *c, const char *name);
/*
 * Checks whether the channel could have these too. Returns 0, or -EDQUOT if they would be too many
 * or too large.
 */
int channel_check_contexts(const struct channel *c, const struct ky_context *contexts, size_t n);
/*
 * Adds the contexts that the channel does not have after the others: all or none. Returns 0,
 * -EDQUOT as above, or -ENOMEM.
 */
int channel_add_contexts(struct channel *c, const struct ky_context *contexts, size_t n);
/*
 * Returns the number of events that were described before the channel had all its contexts. They
 * get the contexts when the session starts again.
 */
unsigned channel_count_older(const struct channel *c);
/* Appends { u32 kind, str argument } for each. */
void contexts_encode(struct ky_writer *w, const struct channel *c);

#endif
