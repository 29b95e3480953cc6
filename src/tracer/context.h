/* SPDX-License-Identifier: MIT */
/*
 * Contexts: values in front of the event's fields that describe the thread which recorded it.
 *
 * A list has what one channel requests, in order. Lists are interned and never freed: a hook keeps
 * its list for its lifetime. A value that costs a system call is kept for each thread. It is read
 * again when it may have changed:
 *
 *   the process forked, or called kymo_contexts_changed()   at once
 *   no notification: prctl, setuid, setns by hand           when the values are older than 128
 *                                                           times what reading them took, some
 *                                                           milliseconds at most
 *   the numbers of process and thread do not change         all the same, about once a second
 *
 * After kymo_contexts_keep(1), a thread reads a value again only if it has changed one itself.
 */
#ifndef TRACER_CONTEXT_H
#define TRACER_CONTEXT_H

#include "proto/context.h"
#include "ring/writer.h"
#include "tracer/stack.h"

struct tracer_contexts;

/*
 * Returns the list of the first n of these contexts, { u32 kind, str argument } each; the same list
 * for the same contexts. Returns NULL if one is unknown or allocation fails. Called under the lock.
 */
const struct tracer_contexts *tracer_contexts_intern(struct ky_bytes list, uint32_t n);
/* Returns the list of its first n contexts. */
const struct tracer_contexts *tracer_contexts_first(const struct tracer_contexts *l, uint32_t n);
/*
 * Notes which of its counters this process may not read (tracer/counter.h). Called under the lock.
 */
void tracer_contexts_probe(const struct tracer_contexts *l);
/* Returns true if the place that records the event matters (tracer/dispatch.h). */
bool tracer_contexts_want_caller(const struct tracer_contexts *l);

/*
 * Writes the values to `to`, which has room for the longest ones, at most KY_CTX_RECORD_MAX bytes,
 * and KYMO_SCRATCH_SLACK more. Returns their end. now: a value of this clock (enum ky_clock).
 * Called in any thread and signal handler. Makes system calls only if kept values have become old,
 * and for counters.
 */
uint8_t *tracer_contexts_put(
	const struct tracer_contexts *l, uint8_t *to, uint64_t now, uint32_t clock);

/*
 * Reads the value of a list of one context, for filters. Returns false if it is no integer, or no
 * string. text: KY_CTX_STRING_MAX bytes.
 */
bool tracer_context_integer(const struct tracer_contexts *one, int64_t *ret_value);
bool tracer_context_string(const struct tracer_contexts *one, char *text);
/* Reads a context of the application's own. Returns false if it is no number now. */
bool tracer_context_real(const struct tracer_contexts *one, double *ret_value);

/*
 * Sets the place that records an event while the event is recorded. Returns the previous one, which
 * the caller restores.
 */
struct tracer_caller tracer_context_caller(struct tracer_caller caller);

/*
 * The values of the list that a thread used last: the bytes of a record, if they are few and of the
 * kinds that are kept. A signal handler may change all of it at any time, and then increments
 * `changes`.
 */
struct tracer_kept {
	ky_vector bytes[KY_FRONT_MAX / sizeof(ky_vector)];
	const struct tracer_contexts *of; /* NULL: no list */
	uint64_t until;			  /* valid for a record with a clock of at most this */
	uint32_t turn;			  /* valid as long as tracer_contexts_turn is this */
	uint32_t changes;
	uint32_t size; /* bytes */
};
extern __thread struct tracer_kept tracer_kept KY_THREAD_TLS;
extern uint32_t tracer_contexts_turn;

/* The same values as arguments of a ky_flat_special_fn. */
struct tracer_front {
	ky_vector first, second;
	uint64_t until;
	uint32_t size;
};

/* Reads values that belong together. Returns false if they are not kept, or no longer valid. */
static inline __attribute__((always_inline)) bool tracer_contexts_kept(
	const struct tracer_contexts *l, struct tracer_front *ret_front)
{
	const struct tracer_kept *k = &tracer_kept;
	uint32_t changes = __atomic_load_n(&k->changes, __ATOMIC_RELAXED);

	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	ret_front->first = k->bytes[0];
	ret_front->second = k->bytes[1];
	ret_front->until = k->until;
	ret_front->size = k->size;
	if (k->of != l || k->turn != __atomic_load_n(&tracer_contexts_turn, __ATOMIC_RELAXED))
		return false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return changes == __atomic_load_n(&k->changes, __ATOMIC_RELAXED);
}

/* ky_record_hook for a hook with contexts. */
void tracer_record_prepended(struct ky_hook *hook, const struct tracer_contexts *contexts,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces);

/* Records an event that has passed the hook's filters, with the hook's contexts if it has any. */
static inline __attribute__((always_inline)) void tracer_record_passed(struct ky_hook *hook,
	const void *payload, size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	len = ky_pieces_recorded(pieces, &n_pieces, len);
	if (hook->contexts)
		tracer_record_prepended(hook, hook->contexts, payload, len, pieces, n_pieces);
	else
		ky_record_hook(hook, payload, len, pieces, n_pieces);
}

/* Called in a forked child. */
void tracer_contexts_reset(void);
/* Called at the end of a thread. */
void tracer_contexts_release_thread(void);

#endif
