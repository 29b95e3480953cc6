/* SPDX-License-Identifier: MIT */
/*
 * One CTF trace of the session ("ust/uid/0/64-bit"): its metadata, which the consumer copies from
 * the log that the session daemon appends to. Stream sets share the trace. In each chunk it has
 * another UUID: readers treat traces with the same UUID as one trace, whose counts continue from
 * file to file.
 *
 * Invariant (metadata before data): packets of a trace are written only after trace_update()
 * succeeded in the same round, and heads are fetched before it is called.
 */
#ifndef CONSUMERD_STREAM_TRACE_H
#define CONSUMERD_STREAM_TRACE_H

#include "base/buf.h"
#include "base/list.h"
#include "consumerd/sink/sink.h"
#include "consumerd/stream/fault.h"
#include "proto/consumer.h"

struct trace {
	struct ky_list node;	   /* in the consumer's list */
	char *dir;		   /* its name */
	struct sink_trace *to;	   /* owned */
	uint64_t uuid_hi, uuid_lo; /* of chunk 0 */
	uint64_t chunk;		   /* the chunk that is written now */
	int log_fd;		   /* owned */
	bool resume;		   /* an earlier consumer may have written it */
	uint64_t n_copied;	   /* bytes of the log that are in the sink */
	struct ky_buf formats;	   /* of kernel events; for readers */
	uint64_t n_formats;	   /* bytes of them that are in the sink */
	struct symbols *symbols;   /* owned; of the kernel's stacks; NULL: not wanted */
	uint64_t n_symbols;	   /* bytes of their text that are in the sink */
	struct fault fault;
};

/* Makes the set's trace, for the present chunk. Takes log_fd, also on failure (NULL: no memory). */
struct trace *trace_new(const struct ky_cons_ring_set *m, struct sink *sink, bool resume,
	uint64_t chunk, int log_fd);
struct trace *trace_free(struct trace *t);
/* Adds the kernel's description of an event. Returns 0 or -ENOMEM. */
int trace_add_format(struct trace *t, const char *text);
/* Gives the trace the kernel's symbols, or newer ones. fd: /proc/kallsyms, the caller's. */
void trace_set_symbols(struct trace *t, int fd);
/* Writes the symbols of what was read meanwhile. They are an aid: a failure is no one's. */
void trace_write_symbols(struct trace *t);
/* Returns the user whose programs the trace is of; UINT32_MAX: the kernel's. */
uint32_t trace_user(const struct trace *t);
#define TRACE_UUID_TEXT 40 /* bytes, with the NUL */
/* Formats a UUID as the metadata spells it. */
void trace_format_uuid(char text[TRACE_UUID_TEXT], uint64_t hi, uint64_t lo);
/* Returns the UUID of the present chunk. */
void trace_uuid(const struct trace *t, uint8_t uuid[KY_CTF_UUID_SIZE]);
/* Begins the files of another chunk, after those of the present one were moved. */
void trace_enter(struct trace *t, uint64_t chunk);
/*
 * Brings the metadata up to date with the log. After an error (-errno, also stored in `fault`), the
 * metadata is unchanged, and the next try waits for some time unless force is set.
 */
int trace_update(struct trace *t, bool force, uint64_t now_ns);
/*
 * Appends text that is not in the log, after the last trace_update(). Does nothing if the trace was
 * not begun, or has a failure.
 */
void trace_append(struct trace *t, const char *text, size_t len);

#endif
