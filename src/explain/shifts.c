/* SPDX-License-Identifier: MIT */
#include "explain/shifts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANCE .002 /* part of the shifts, or */
#define MIN_SHIFTS 2
#define MANY_RUNS  10 /* each of them is a coincidence of its own */
#define LENGTH	   2  /* of runs, on average: shorter ones hardly depend on each other */

static int compare_instances(const void *a, const void *b)
{
	const struct ky_instance *x = *(struct ky_instance *const *)a;
	const struct ky_instance *y = *(struct ky_instance *const *)b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

int ky_shifts_make(struct ky_shifts *s, struct ky_instance *const *all, size_t n)
{
	*s = (struct ky_shifts){.v = calloc(n + 1, sizeof(struct ky_instance *)), .n = n};
	if (!s->v)
		return -ENOMEM;
	memcpy(s->v, all, n * sizeof(*s->v));
	qsort(s->v, n, sizeof(*s->v), compare_instances);
	return 0;
}

void ky_shifts_deinit(struct ky_shifts *s)
{
	free(s->v);
}

static void set_bit(uint64_t *bits, size_t i)
{
	bits[i / 64] |= 1ull << i % 64;
}

/* 64 bits, from number i on. */
static uint64_t bits_from(const uint64_t *bits, size_t i)
{
	uint64_t low = bits[i / 64] >> i % 64;

	return i % 64 ? low | bits[i / 64 + 1] << (64 - i % 64) : low;
}

/* Of the affected ones: how many have the property of the instance that is `shift` later. */
static size_t count_shifted(const uint64_t *affected, const uint64_t *has, size_t n, size_t shift)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i += 64) {
		if (affected[i / 64])
			found += (size_t)__builtin_popcountll(
				affected[i / 64] & bits_from(has, i + shift));
	}
	return found;
}

static size_t count_chances(
	const struct ky_shifts *s, const uint64_t *affected, const uint64_t *has)
{
	size_t least = count_shifted(affected, has, s->n, 0), found = 0;

	for (size_t shift = 1; shift < s->n; shift++)
		found += count_shifted(affected, has, s->n, shift) >= least;
	return found;
}

/* Whether affected instances that have it come in few runs, which may meet those of slow ones. */
static bool is_in_runs(const uint64_t *affected, const uint64_t *has, size_t n)
{
	size_t found = 0, n_runs = 0;
	uint64_t last = 0;

	for (size_t i = 0; i < n; i += 64) {
		uint64_t both = affected[i / 64] & has[i / 64];

		found += (size_t)__builtin_popcountll(both);
		n_runs += (size_t)__builtin_popcountll(both & ~(both << 1 | last));
		last = both >> 63;
	}
	return n_runs < MANY_RUNS && found >= LENGTH * n_runs;
}

int ky_shifts_test(const struct ky_shifts *s, struct ky_instance *const *affected, size_t n,
	ky_shifts_has *has, const void *arg)
{
	uint64_t *a = calloc(s->n / 64 + 1, sizeof(*a));
	/* Twice, so that what goes beyond the end comes from the begin. */
	uint64_t *h = calloc(2 * s->n / 64 + 2, sizeof(*h));
	int r = a && h ? 0 : -ENOMEM;
	size_t found = 0;

	for (size_t i = 0; !r && i < s->n; i++) {
		if (!has(arg, s->v[i]))
			continue;
		set_bit(h, i);
		set_bit(h, s->n + i);
	}
	for (size_t i = 0; !r && s->n && i < n; i++) {
		struct ky_instance **at = bsearch(
			&affected[i], s->v, s->n, sizeof(*s->v), compare_instances);

		if (at)
			set_bit(a, (size_t)(at - s->v));
	}
	if (!r && is_in_runs(a, h, s->n))
		found = count_chances(s, a, h);
	free(a);
	free(h);
	return r ? r : (double)found > KY_MAX(MIN_SHIFTS, MAX_CHANCE * (double)s->n);
}
