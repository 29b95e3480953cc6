/* SPDX-License-Identifier: MIT */
#include "consumerd/stream/slots.h"

void slots_store(struct slots *s, const struct ky_resume_slot *next)
{
	struct ky_resume_slot *to = &s->memory->slots[!s->used], invalid = *next;

	invalid.chunk = KY_RESUME_INVALID;
	__atomic_store_n(&to->chunk, KY_RESUME_INVALID, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*to = invalid;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&to->chunk, next->chunk, __ATOMIC_RELAXED);
}

void slots_enter(struct slots *s)
{
	s->used = !s->used;
	s->base = s->memory->slots[s->used];
}

bool slots_have(const struct slots *s, uint64_t chunk)
{
	return s->memory->slots[!s->used].chunk == chunk;
}

static unsigned int newest_slot(const struct ky_resume_stream *r, uint64_t chunk)
{
	const struct ky_resume_slot *a = &r->slots[0], *b = &r->slots[1];

	if (a->chunk > chunk || b->chunk > chunk)
		return a->chunk > chunk;
	return a->chunk != b->chunk ? b->chunk > a->chunk : b->file > a->file;
}

void slots_resume(struct slots *s, uint64_t chunk)
{
	s->used = newest_slot(s->memory, chunk);
	s->base = s->memory->slots[s->used];
}
