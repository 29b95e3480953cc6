/* SPDX-License-Identifier: MIT */
#include "tracer/special.h"

#include "tracer/context.h"
#include "tracer/filter.h"
#include "ring/asm-offsets.h"

static inline bool passes(const struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	/* Acquire: pairs with the release in tracer_filters_set. */
	const struct tracer_filters *filters = __atomic_load_n(&hook->filters, __ATOMIC_ACQUIRE);

	return !filters || tracer_filters_pass(filters, payload, len, pieces, n_pieces);
}

void tracer_record_special(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (!passes(hook, payload, len, pieces, n_pieces))
		return;
	if (hook->contexts)
		tracer_record_prepended(hook, hook->contexts, payload, len, pieces, n_pieces);
	else
		ky_record_hook(hook, payload, len, pieces, n_pieces);
}

void tracer_record_refused(struct ky_hook *hook, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	if (passes(hook, payload, len, pieces, n_pieces))
		ky_record_lost(hook, KY_LOST_REFUSED);
}

#if defined(__x86_64__) && defined(__LP64__)
/* Contexts that are kept, or none. False: they must be found out. */
static inline bool front_of(const struct ky_hook *hook, struct tracer_kept *ret_kept)
{
	if (hook->contexts)
		return tracer_contexts_kept(hook->contexts, ret_kept);
	*ret_kept = (struct tracer_kept){.until = UINT64_MAX};
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

/* The event has passed the hook's filters. Functions of their own, so that one that does not costs next to nothing. */
static __attribute__((noinline)) void record_passed_flat(
	struct ky_hook *hook, const void *payload, size_t len)
{
	ky_flat_special_fn record = ky_rseq_offset == KY_RSEQ_KNOWN ? ky_rseq_flat_special_known
								    : ky_rseq_flat_special;
	struct tracer_kept kept;

	if (ky_unlikely(!front_of(hook, &kept) || len > KY_BLOCK_MAX / 2 ||
			record(hook, payload, hook, kept.size + len, kept.until, kept.size,
				kept.bytes[0], kept.bytes[1]) != KY_WRITE_DONE))
		record_otherwise(hook, payload, len);
}

static __attribute__((noinline)) void record_passed_word(
	struct ky_hook *hook, uint64_t value, size_t len)
{
	ky_word_special_fn record = ky_rseq_offset == KY_RSEQ_KNOWN ? ky_rseq_word_special_known
								    : ky_rseq_word_special;
	struct tracer_kept kept;

	if (ky_unlikely(!front_of(hook, &kept) ||
			record(hook, value, hook, kept.size + len, kept.until, kept.size,
				kept.bytes[0], kept.bytes[1]) != KY_WRITE_DONE)) {
		uint64_t payload[1 + KYMO_SCRATCH_SLACK / sizeof(uint64_t)] = {value};

		record_otherwise(hook, payload, len);
	}
}

static void record_flat(const struct kymo_event *event, const void *payload, void *arg, size_t len)
{
	struct ky_hook *hook = arg;

	if (ky_unlikely(!hook->n_special))
		ky_record_flat(event, payload, hook, len);
	else if (passes(hook, payload, len, NULL, 0))
		record_passed_flat(hook, payload, len);
}

static void record_word(const struct kymo_event *event, uint64_t value, void *arg, size_t len)
{
	struct ky_hook *hook = arg;

	if (ky_unlikely(!hook->n_special))
		ky_record_word(event, value, hook, len);
	else if (passes(hook, &value, len, NULL, 0))
		record_passed_word(hook, value, len);
}

void tracer_record_choose_special(struct kymo_event_state *state)
{
	const struct ky_hook *hook = state->hook;

	if (!hook->n_special || hook->special != tracer_record_special)
		return;
	__atomic_store_n(&state->record_flat, record_flat, __ATOMIC_RELAXED);
	__atomic_store_n(&state->record_word, record_word, __ATOMIC_RELAXED);
}
#else
void tracer_record_choose_special(struct kymo_event_state *state)
{
	(void)state;
}
#endif
