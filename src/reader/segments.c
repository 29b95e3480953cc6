/* SPDX-License-Identifier: MIT */
/*
 * A sweep over the ends of all ranges. The ranges that hold the current value are a set of bits
 * with a tree of summaries above it, so that the first members are found without a look at all.
 */
#include "reader/segments.h"

#include "base/bisect.h"

#define MAX_LEVELS 6 /* of 64 each: 2^36 ranges */

struct end {
	uint64_t at;	/* biased, see bias(); the first value that changes */
	uint32_t index; /* of the range */
	bool is_begin;
};

struct set {
	uint64_t *levels[MAX_LEVELS]; /* owned; the last one is one word */
	size_t n_words[MAX_LEVELS];
	unsigned n_levels;
};

/* Makes numbers compare as unsigned ones. */
static uint64_t bias(uint64_t v, bool is_signed)
{
	return is_signed ? v ^ (uint64_t)1 << 63 : v;
}

static bool make_set(struct set *s, size_t n)
{
	do {
		n = (n + 63) / 64;
		s->levels[s->n_levels] = calloc(n, sizeof(uint64_t));
		if (!s->levels[s->n_levels])
			return false;
		s->n_words[s->n_levels++] = n;
	} while (n > 1);
	return true;
}

static void free_set(struct set *s)
{
	for (unsigned i = 0; i < s->n_levels; i++)
		free(s->levels[i]);
}

static void set_add(struct set *s, size_t index)
{
	for (unsigned i = 0; i < s->n_levels; i++, index /= 64)
		s->levels[i][index / 64] |= (uint64_t)1 << index % 64;
}

static void set_remove(struct set *s, size_t index)
{
	for (unsigned i = 0; i < s->n_levels; i++, index /= 64) {
		s->levels[i][index / 64] &= ~((uint64_t)1 << index % 64);
		if (s->levels[i][index / 64])
			return;
	}
}

/* The first member that is at least from; SIZE_MAX: none. */
static size_t set_next(const struct set *s, size_t from)
{
	for (unsigned level = 0; level < s->n_levels; level++) {
		uint64_t word = from / 64 < s->n_words[level]
					? s->levels[level][from / 64] >> from % 64
					: 0;

		if (word) {
			from += (size_t)__builtin_ctzll(word);
			while (level-- > 0)
				from = from * 64 + (size_t)__builtin_ctzll(s->levels[level][from]);
			return from;
		}
		from = from / 64 + 1;
	}
	return SIZE_MAX;
}

static int compare_ends(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

struct sweep {
	struct ky_segments *segments;
	struct set set;
	size_t n_indexes, cap_indexes;
	unsigned max;
};

/* Adds the segment lo .. hi (biased) of the ranges in the set. */
static bool add_segment(struct sweep *w, uint64_t lo, uint64_t hi)
{
	struct ky_segments *s = w->segments;
	struct ky_segment *to = &s->v[s->n];

	*to = (struct ky_segment){.lo = lo, .hi = hi, .first = (uint32_t)w->n_indexes};
	for (size_t i = set_next(&w->set, 0); i != SIZE_MAX && to->n < w->max;
		i = set_next(&w->set, i + 1)) {
		if (w->n_indexes == w->cap_indexes) {
			size_t cap = 2 * w->cap_indexes + 64;
			uint32_t *more = reallocarray(s->indexes, cap, sizeof(*more));

			if (!more || cap > UINT32_MAX)
				return false;
			s->indexes = more;
			w->cap_indexes = cap;
		}
		s->indexes[w->n_indexes++] = (uint32_t)i;
		to->n++;
	}
	s->n += to->n > 0;
	return true;
}

static bool sweep_ends(struct sweep *w, const struct end *ends, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint64_t at = ends[i].at;

		for (; i < n && ends[i].at == at; i++) {
			if (ends[i].is_begin)
				set_add(&w->set, ends[i].index);
			else
				set_remove(&w->set, ends[i].index);
		}
		if (!add_segment(w, at, i < n ? ends[i].at - 1 : UINT64_MAX))
			return false;
	}
	return true;
}

/* Two ends of each range, sorted; the end of one that reaches the last value is left out. */
static struct end *sort_ends(const struct ky_range *ranges, size_t n, bool is_signed, size_t *ret_n)
{
	struct end *ends = reallocarray(NULL, 2 * n + 1, sizeof(*ends));
	size_t n_ends = 0;

	for (size_t i = 0; ends && i < n; i++) {
		uint64_t lo = bias(ranges[i].lo, is_signed), hi = bias(ranges[i].hi, is_signed);

		if (hi < lo && is_signed)
			hi = UINT64_MAX;
		else if (hi < lo)
			lo = 0;
		ends[n_ends++] = (struct end){lo, (uint32_t)i, true};
		if (hi < UINT64_MAX)
			ends[n_ends++] = (struct end){hi + 1, (uint32_t)i, false};
	}
	if (ends)
		qsort(ends, n_ends, sizeof(*ends), compare_ends);
	*ret_n = n_ends;
	return ends;
}

int ky_segments_build(struct ky_segments *s, struct ky_arena *arena, const struct ky_range *ranges,
	size_t n, bool is_signed, unsigned max)
{
	struct ky_segments built = {.is_signed = is_signed};
	struct sweep w = {.segments = &built, .max = max};
	size_t n_ends;
	struct end *ends = sort_ends(ranges, n, is_signed, &n_ends);
	bool ok;

	built.v = reallocarray(NULL, n_ends + 1, sizeof(*built.v));
	ok = ends && built.v && make_set(&w.set, n + 1) && sweep_ends(&w, ends, n_ends);
	*s = built;
	s->v = ok ? ky_arena_alloc(arena, built.n * sizeof(*s->v)) : NULL;
	s->indexes = s->v ? ky_arena_alloc(arena, w.n_indexes * sizeof(*s->indexes)) : NULL;
	ok = s->indexes;
	if (ok && built.n) {
		memcpy(s->v, built.v, built.n * sizeof(*s->v));
		memcpy(s->indexes, built.indexes, w.n_indexes * sizeof(*s->indexes));
	}
	free_set(&w.set);
	free(built.v);
	free(built.indexes);
	free(ends);
	return ok ? 0 : -ENOMEM;
}

const struct ky_segment *ky_segments_find(const struct ky_segments *s, uint64_t value)
{
	uint64_t v = bias(value, s->is_signed);
	size_t first;

	ky_bisect(first, s->n, k, s->v[k].hi < v);
	return first < s->n && s->v[first].lo <= v ? &s->v[first] : NULL;
}
