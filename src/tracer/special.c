/* SPDX-License-Identifier: MIT */
#include "tracer/special.h"

#include "tracer/context.h"
#include "tracer/filter.h"
#include "tracer/trigger.h"

static inline bool passes_filters(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in set_filters. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	return !filters || tracer_filters_pass(filters, payload, len, pieces, n_pieces, hook);
}

void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (passes_filters(hook, payload, len, pieces, n_pieces))
		tracer_record_passed(hook, payload, len, pieces, n_pieces);
}

void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (passes_filters(hook, payload, len, pieces, n_pieces))
		ky_record_lost(hook, KY_LOST_REFUSED);
}

void tracer_record_renewed(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in renew_hook. */
	struct ky_hook *heir = __atomic_load_n(&hook->heir, __ATOMIC_ACQUIRE);
	ky_special_fn special = heir->special ? heir->special : tracer_record_special;

	special(heir, payload, len, pieces, n_pieces);
}

#if defined(__x86_64__) && defined(__LP64__)
/* Gets the contexts that are kept, or none. Returns false if they must be read. */
static inline __attribute__((always_inline)) bool front_of(
	const struct ky_hook *hook, struct tracer_front *ret_front)
{
	if (hook->contexts)
		return tracer_contexts_kept(hook->contexts, ret_front);
	*ret_front = (struct tracer_front){.until = UINT64_MAX};
	return true;
}

static __attribute__((cold, noinline)) void record_otherwise(
	struct ky_hook *hook, const void *payload, size_t len)
{
	if (hook->contexts)
		tracer_record_prepended(hook, hook->contexts, payload, len, NULL, 0);
	else
		ky_record_hook(hook, payload, len, NULL, 0);
}

/*
 * Records an event that has passed the hook's filters. This and the check are functions of their
 * own, so that an event that does not pass costs almost nothing, and one without filters no more
 * than it must.
 */
static inline __attribute__((always_inline)) void record_passed_flat(
	struct ky_hook *hook, const void *payload, size_t len)
{
	struct tracer_front front;

	if (ky_unlikely(!front_of(hook, &front) || len > KY_BLOCK_MAX / 2 ||
			ky_flat_special(hook, payload, hook, front.size + len, front.until,
				front.size, front.first, front.second) != KY_WRITE_DONE))
		record_otherwise(hook, payload, len);
}

static __attribute__((cold, noinline)) void record_word_otherwise(
	struct ky_hook *hook, uint64_t value, size_t len)
{
	uint64_t payload[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {value};

	record_otherwise(hook, payload, len);
}

static inline __attribute__((always_inline)) void record_passed_word(
	struct ky_hook *hook, uint64_t value, size_t len)
{
	struct tracer_front front;

	if (ky_unlikely(!front_of(hook, &front) ||
			ky_word_special(hook, value, hook, front.size + len, front.until,
				front.size, front.first, front.second) != KY_WRITE_DONE))
		record_word_otherwise(hook, value, len);
}

static __attribute__((noinline)) void passed_flat(
	struct ky_hook *hook, const void *payload, size_t len)
{
	record_passed_flat(hook, payload, len);
}

static __attribute__((noinline)) void passed_word(struct ky_hook *hook, uint64_t value, size_t len)
{
	record_passed_word(hook, value, len);
}

static __attribute__((noinline)) void filtered_flat_slow(
	const struct kymo_event *event, const void *payload, struct ky_hook *hook, size_t len)
{
	if (ky_unlikely(!hook->n_special))
		ky_record_flat(event, payload, hook, len);
	else if (passes_filters(hook, payload, len, NULL, 0))
		passed_flat(hook, payload, len);
}

static __attribute__((noinline)) void filtered_word_slow(
	const struct kymo_event *event, uint64_t value, struct ky_hook *hook, size_t len)
{
	if (ky_unlikely(!hook->n_special))
		ky_record_word(event, value, hook, len);
	else if (passes_filters(hook, &value, len, NULL, 0))
		passed_word(hook, value, len);
}

/* The first function that an event with a common filter calls, and the last one if it fails. */
static void filtered_flat(
	const struct kymo_event *event, const void *payload, void *arg, size_t len)
{
	struct ky_hook *hook = arg;
	/* Acquire: pairs with the release in set_filters. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	if (ky_unlikely(
		    !hook->n_special || !filters || filters->quick.end > len || len > KY_BLOCK_MAX))
		filtered_flat_slow(event, payload, hook, len);
	else if (ky_filter_quick_pass(&filters->quick, payload))
		passed_flat(hook, payload, len);
}

static void filtered_word(const struct kymo_event *event, uint64_t value, void *arg, size_t len)
{
	struct ky_hook *hook = arg;
	/* Acquire: pairs with the release in set_filters. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	if (ky_unlikely(!hook->n_special || !filters || filters->quick.word_end > len))
		filtered_word_slow(event, value, hook, len);
	else if (ky_filter_quick_pass_word(&filters->quick, value))
		passed_word(hook, value, len);
}

/* Returns the triggers of the hook, if its filters are a list that has some. */
static inline const struct tracer_triggers *triggers_of(const struct ky_hook *hook)
{
	/* Acquire: pairs with the release in set_filters. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	return filters && filters->n == TRACER_HAS_TRIGGERS ? filters->code[0] : NULL;
}

/* For an event with one trigger that has a common filter: nearly always, that rejects the event. */
static void triggered_flat(
	const struct kymo_event *event, const void *payload, void *arg, size_t len)
{
	struct ky_hook *hook = arg;
	const struct tracer_triggers *t = triggers_of(hook);

	if (ky_unlikely(!hook->n_special || !t || t->quick.end > len || len > KY_BLOCK_MAX ||
			ky_filter_quick_pass(&t->quick, payload)))
		filtered_flat_slow(event, payload, hook, len);
	else
		record_passed_flat(hook, payload, len);
}

static void triggered_word(const struct kymo_event *event, uint64_t value, void *arg, size_t len)
{
	struct ky_hook *hook = arg;
	const struct tracer_triggers *t = triggers_of(hook);

	if (ky_unlikely(!hook->n_special || !t || t->quick.word_end > len ||
			ky_filter_quick_pass_word(&t->quick, value)))
		filtered_word_slow(event, value, hook, len);
	else
		record_passed_word(hook, value, len);
}

static void unfiltered_flat(
	const struct kymo_event *event, const void *payload, void *arg, size_t len)
{
	struct ky_hook *hook = arg;

	if (ky_unlikely(!hook->n_special || hook->filters))
		filtered_flat(event, payload, hook, len);
	else
		record_passed_flat(hook, payload, len);
}

static void unfiltered_word(const struct kymo_event *event, uint64_t value, void *arg, size_t len)
{
	struct ky_hook *hook = arg;

	if (ky_unlikely(!hook->n_special || hook->filters))
		filtered_word(event, value, hook, len);
	else
		record_passed_word(hook, value, len);
}

void tracer_choose_special(struct kymo_event_state *state)
{
	const struct ky_hook *hook = state->hook;

	if (!hook->n_special || hook->special != tracer_record_special)
		return;
	if (triggers_of(hook)) {
		state->record_flat = triggered_flat;
		state->record_word = triggered_word;
		return;
	}
	state->record_flat = hook->filters ? filtered_flat : unfiltered_flat;
	state->record_word = hook->filters ? filtered_word : unfiltered_word;
}
#else
void tracer_choose_special(struct kymo_event_state *state)
{
	(void)state;
}
#endif
