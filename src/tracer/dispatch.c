/* SPDX-License-Identifier: MIT */
#include "tracer/dispatch.h"

#include "tracer/context.h"
#include "tracer/special.h"

__thread const struct tracer_mask *tracer_only KY_THREAD_TLS;

static bool is_in(const struct tracer_mask *m, const struct ky_set *set)
{
	size_t i = (size_t)(ky_container_of(set, struct tracer_set, set) - tracer_sets);

	return __atomic_load_n(&m->bits[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1;
}

void tracer_record_only(const struct tracer_mask *only, struct ky_hook *hook, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release that links a hook. */
	for (; hook; hook = __atomic_load_n(&hook->next, __ATOMIC_ACQUIRE))
		if (ky_hook_is_active(hook) && is_in(only, hook->set))
			ky_record_into(hook, payload, len, pieces, n_pieces);
}

static void record_wanted(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (tracer_only)
		tracer_record_only(
			tracer_only, event->state->hooks, payload, len, pieces, n_pieces);
	else
		ky_record_event(event, payload, len, pieces, n_pieces);
}

/* The caller of the function that contains this macro. */
#define CALLER()                                                                                   \
	((struct tracer_caller){                                                                   \
		.ip = (uintptr_t)__builtin_return_address(0),                                      \
		.frame = *(const uintptr_t *)__builtin_frame_address(0),                           \
		.stack = (uintptr_t)__builtin_frame_address(0),                                    \
	})

static void record_from(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	struct tracer_caller before = tracer_context_caller(CALLER());

	record_wanted(event, payload, len, pieces, n_pieces);
	tracer_context_caller(before);
}

static void record_flat_from(
	const struct kymo_event *event, const void *payload, void *hook, size_t len)
{
	struct tracer_caller before = tracer_context_caller(CALLER());

	(void)hook;
	record_wanted(event, payload, len, NULL, 0);
	tracer_context_caller(before);
}

static void record_word_from(const struct kymo_event *event, uint64_t value, void *hook, size_t len)
{
	uint64_t payload[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {value};
	struct tracer_caller before = tracer_context_caller(CALLER());

	(void)hook;
	record_wanted(event, payload, len, NULL, 0);
	tracer_context_caller(before);
}

void tracer_dispatch(struct kymo_event_state *ret_state, struct ky_hook *hooks, bool from)
{
	ky_record_choose(ret_state, hooks);
	tracer_choose_special(ret_state);
	if (from) {
		ret_state->record = record_from;
		ret_state->record_flat = record_flat_from;
		ret_state->record_word = record_word_from;
	}
}

void tracer_lose_only(const struct tracer_mask *only, struct ky_hook *hook)
{
	for (; hook; hook = hook->next)
		if (hook->active && is_in(only, hook->set))
			ky_record_lost(hook->heir ? hook->heir : hook, KY_LOST_TOO_BIG);
}

bool tracer_leads_into(const struct ky_hook *hook, const struct tracer_mask *only)
{
	for (; hook; hook = hook->next)
		if (hook->active && is_in(only, hook->set))
			return true;
	return false;
}
