/* SPDX-License-Identifier: MIT */
#include "tracer/only.h"

__thread const struct tracer_mask *tracer_only KY_THREAD_TLS;

static bool is_in(const struct tracer_mask *m, const struct ky_set *set)
{
	size_t i = (size_t)(ky_container_of(set, struct tracer_set, set) - tracer.sets);

	return __atomic_load_n(&m->bits[i / 64], __ATOMIC_RELAXED) >> (i % 64) & 1;
}

void tracer_record_only(const struct tracer_mask *only, struct ky_hook *hook, const void *payload,
	size_t len, const struct kymo_piece *pieces, size_t n_pieces)
{
	for (; hook; hook = __atomic_load_n(&hook->next, __ATOMIC_ACQUIRE)) {
		/* Acquire: as in ky_record. */
		if (!__atomic_load_n(&hook->active, __ATOMIC_ACQUIRE) || !is_in(only, hook->set))
			continue;
		if (hook->special)
			hook->special(hook, payload, len, pieces, n_pieces);
		else
			ky_record_hook(hook, payload, len, pieces, n_pieces);
	}
}

void tracer_lose_only(const struct tracer_mask *only, struct ky_hook *hook)
{
	for (; hook; hook = hook->next)
		if (hook->active && is_in(only, hook->set))
			ky_record_lost(hook, KY_LOST_TOO_BIG);
}

bool tracer_leads_into(const struct ky_hook *hook, const struct tracer_mask *only)
{
	for (; hook; hook = hook->next)
		if (hook->active && is_in(only, hook->set))
			return true;
	return false;
}
