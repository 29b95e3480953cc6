/* SPDX-License-Identifier: MIT */
/*
 * Contexts: what a record says of the thread that made it, in front of the event's fields.
 *
 * A list is what one channel asks for, in order. Lists are interned and never freed: a hook keeps its list for life. What
 * costs a system call to find out is kept for each thread, and found out again when it may have changed:
 *
 *   the process forked, or said kymo_contexts_changed()   at once
 *   nobody told us: prctl, setuid, setns by hand          when the values are older than 128 times what it took to find
 *                                                         them out, some milliseconds at most
 */
#ifndef TRACER_CONTEXT_H
#define TRACER_CONTEXT_H

#include "proto/context.h"
#include "ring/writer.h"

struct tracer_contexts;

/*
 * The list of the first n of these contexts, { u32 kind, str argument } each; the same list for the same contexts. NULL
 * when one is unknown, or without memory. Under the lock.
 */
const struct tracer_contexts *tracer_contexts_intern(struct ky_bytes list, uint32_t n);
/* The list of its first n. */
const struct tracer_contexts *tracer_contexts_first(const struct tracer_contexts *l, uint32_t n);
/* Notes which of its counters this process may not read (tracer/counter.h). Under the lock. */
void tracer_contexts_probe(const struct tracer_contexts *l);
/* Most bytes that they take in a record. */
uint32_t tracer_contexts_size(const struct tracer_contexts *l);
/* Does it matter from where the event is recorded (tracer/dispatch.h)? */
bool tracer_contexts_want_caller(const struct tracer_contexts *l);

/*
 * Writes the values to `to`, where there is room for tracer_contexts_size() bytes and KYMO_SCRATCH_SLACK more; returns where
 * they end. now: of this clock (enum ky_clock). In any thread, also in signal handlers. Calls the system only where kept
 * values have grown old, and for counters.
 */
uint8_t *tracer_contexts_put(
	const struct tracer_contexts *l, uint8_t *to, uint64_t now, uint32_t clock);

/* The value of a list of one, for filters. False: it is no integer; no string. text: KY_CTX_STRING_MAX bytes. */
bool tracer_context_integer(const struct tracer_contexts *one, int64_t *ret_value);
bool tracer_context_string(const struct tracer_contexts *one, char *text);
/* Of a context of the program's own. False: it is no number now. */
bool tracer_context_real(const struct tracer_contexts *one, double *ret_value);

/* Where the program is that records an event; known for as long as it does. */
struct tracer_caller {
	uintptr_t ip;	 /* 0: not known */
	uintptr_t frame; /* frame pointer, if the program has them */
	uintptr_t stack; /* an address in its stack, below that frame */
};
/* Returns the one before, to be put back. */
struct tracer_caller tracer_context_caller(struct tracer_caller caller);

/*
 * What a thread keeps of the list that it used last: the very bytes, if they are few and of the kinds that are kept. A signal
 * handler may change all of it at any time, and then counts.
 */
struct tracer_kept {
	ky_vector bytes[KY_FRONT_MAX / sizeof(ky_vector)];
	const struct tracer_contexts *of; /* NULL: of none */
	uint64_t until; /* to be believed in a record with a clock of at most this */
	uint32_t turn;	/* as long as tracer_contexts_turn is this */
	uint32_t changes;
	uint32_t size; /* bytes */
};
extern __thread struct tracer_kept tracer_kept KY_THREAD_TLS;
extern uint32_t tracer_contexts_turn;

/* The same as arguments of a ky_flat_special_fn. */
struct tracer_front {
	ky_vector first, second;
	uint64_t until;
	uint32_t size;
};

/* What belongs together. False: it is not kept, or not any more. */
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

/* In a forked child. */
void tracer_contexts_reset(void);
/* At the end of a thread. */
void tracer_contexts_release_thread(void);

#endif
