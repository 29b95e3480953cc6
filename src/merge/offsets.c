/* SPDX-License-Identifier: MIT */
#include "merge/offsets.h"

#include <stdlib.h>

int offsets_init(struct offsets *o, size_t n)
{
	*o = (struct offsets){.n = n, .most = calloc(n * n, sizeof(int64_t))};
	for (size_t i = 0; o->most && i < n * n; i++)
		o->most[i] = i % (n + 1) ? OFFSETS_UNKNOWN : 0;
	return o->most ? 0 : -ENOMEM;
}

void offsets_deinit(struct offsets *o)
{
	free(o->most);
}

static void tighten(struct offsets *o, size_t a, size_t b, int64_t most)
{
	if (most < o->most[a * o->n + b])
		o->most[a * o->n + b] = most;
}

void offsets_add(struct offsets *o, size_t a, int64_t a_ns, size_t b, int64_t b_ns)
{
	int64_t most;

	/* a_ns + shift(a) <= b_ns + shift(b) */
	if (!__builtin_sub_overflow(b_ns, a_ns, &most))
		tighten(o, b, a, most);
}

/* All bounds that follow by way of host k. */
static void tighten_through(struct offsets *o, size_t k)
{
	int64_t sum;

	for (size_t a = 0; a < o->n; a++)
		for (size_t b = 0; b < o->n; b++) {
			const int64_t x = o->most[a * o->n + k], y = o->most[k * o->n + b];

			if (x != OFFSETS_UNKNOWN && y != OFFSETS_UNKNOWN &&
				!__builtin_add_overflow(x, y, &sum))
				tighten(o, a, b, sum);
		}
}

static int64_t half(int64_t a, int64_t b)
{
	return a / 2 + b / 2 + (a % 2 + b % 2) / 2;
}

/* A choice limits those that follow. */
static void choose_offset(struct offsets *o, size_t i, int64_t shift)
{
	tighten(o, 0, i, shift);
	tighten(o, i, 0, -shift);
	tighten_through(o, 0);
	tighten_through(o, i);
}

/* Returns the value that is possible for a host after the choices so far. */
static int64_t nearest(const struct offsets *o, size_t i, int64_t wanted)
{
	const int64_t up = o->most[i], down = o->most[i * o->n];

	return wanted > up ? up : down != OFFSETS_UNKNOWN && wanted < -down ? -down : wanted;
}

int offsets_solve(struct offsets *o, struct offset *ret, int64_t *ret_ns)
{
	const size_t n = o->n;

	for (size_t k = 0; k < n; k++)
		tighten_through(o, k);
	for (size_t i = 0; i < n; i++)
		if (o->most[i * n + i] < 0) {
			*ret_ns = -o->most[i * n + i];
			return -EDOM;
		}
	/* The middles keep the bounds between their hosts, too, but for rounding. */
	for (size_t i = 0; i < n; i++) {
		const int64_t up = o->most[i], down = o->most[i * n];
		const bool both = up != OFFSETS_UNKNOWN && down != OFFSETS_UNKNOWN;

		ret[i].shift_ns = both ? half(up, -down) : 0;
		ret[i].error_ns = both ? half(up, down) + (up % 2 != down % 2) : OFFSETS_UNKNOWN;
	}
	for (int both = 1; both >= 0; both--)
		for (size_t i = 0; i < n; i++)
			if (both == (ret[i].error_ns != OFFSETS_UNKNOWN)) {
				ret[i].shift_ns = nearest(o, i, ret[i].shift_ns);
				choose_offset(o, i, ret[i].shift_ns);
			}
	return 0;
}
