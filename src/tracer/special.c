/* SPDX-License-Identifier: MIT */
#include "tracer/special.h"

#include "tracer/filter.h"
#include "tracer/context.h"

static inline bool passes(const struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in tracer_filters_set. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	return !filters || tracer_filters_pass(filters, payload, len, pieces, n_pieces);
}

static inline void record(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (!passes(hook, payload, len, pieces, n_pieces))
		return;
	if (hook->contexts)
		tracer_record_prepended(hook, hook->contexts, payload, len, pieces, n_pieces);
	else
		ky_record_hook(hook, payload, len, pieces, n_pieces);
}

void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	record(hook, payload, len, pieces, n_pieces);
}

void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (passes(hook, payload, len, pieces, n_pieces))
		ky_record_lost(hook, KY_LOST_REFUSED);
}

/* --- the short way for an event with one hook, which has filters: most such events end here --- */

static inline void record_filtered(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* The event's hooks may have become others while its function was being called. */
	if (ky_unlikely(hook->next || hook->special != tracer_record_special))
		ky_record(hook, payload, len, pieces, n_pieces);
	/* Acquire: as in ky_record. */
	else if (__atomic_load_n(&hook->active, __ATOMIC_ACQUIRE))
		record(hook, payload, len, pieces, n_pieces);
}

static void filtered(const struct kymo_event *event, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	record_filtered(__atomic_load_n((struct ky_hook **)&event->state->hooks, __ATOMIC_ACQUIRE),
		payload, len, pieces, n_pieces);
}

static void filtered_flat(
	const struct kymo_event *event, const void *payload, void *hooks, size_t len)
{
	record_filtered(hooks, payload, len, NULL, 0);
}

static void filtered_word(const struct kymo_event *event, uint64_t value, void *hooks, size_t len)
{
	uint64_t payload[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {value};

	record_filtered(hooks, payload, len, NULL, 0);
}

void tracer_record_choose_filtered(struct kymo_event_state *state, const struct ky_hook *hooks)
{
	if (!hooks || hooks->next || hooks->special != tracer_record_special || !hooks->filters)
		return;
	__atomic_store_n(&state->record, filtered, __ATOMIC_RELAXED);
	__atomic_store_n(&state->record_flat, filtered_flat, __ATOMIC_RELAXED);
	__atomic_store_n(&state->record_word, filtered_word, __ATOMIC_RELAXED);
}
