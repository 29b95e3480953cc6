/* SPDX-License-Identifier: MIT */
#include "analysis/histogram.h"

#define STEP_BITS 10

/* The power and the step of a number. */
static unsigned power_of(uint64_t v, unsigned *ret_step)
{
	unsigned bits = v ? 64 - (unsigned)__builtin_clzll(v) : 0;

	if (bits <= STEP_BITS) {
		*ret_step = (unsigned)v;
		return 0;
	}
	*ret_step = (unsigned)(v >> (bits - 1 - STEP_BITS)) & (KY_HISTOGRAM_STEPS - 1);
	return bits - STEP_BITS;
}

/* The numbers of a step: the first one, and how many they are. */
static uint64_t begin_of(unsigned power, unsigned step, uint64_t *ret_width)
{
	if (!power) {
		*ret_width = 1;
		return step;
	}
	*ret_width = (uint64_t)1 << (power - 1);
	return ((uint64_t)KY_HISTOGRAM_STEPS + step) << (power - 1);
}

static bool make_power(struct ky_histogram *h, unsigned power)
{
	if (!h->steps[power])
		h->steps[power] = calloc(KY_HISTOGRAM_STEPS, sizeof(uint64_t));
	return h->steps[power];
}

static void add_summary(
	struct ky_histogram *h, uint64_t n, uint64_t sum, uint64_t min, uint64_t max)
{
	h->min = h->n ? KY_MIN(h->min, min) : min;
	h->max = h->n ? KY_MAX(h->max, max) : max;
	h->n += n;
	if (__builtin_add_overflow(h->sum, sum, &h->sum))
		h->sum = UINT64_MAX;
}

int ky_histogram_add(struct ky_histogram *h, uint64_t value)
{
	unsigned step, power = power_of(value, &step);

	if (!make_power(h, power))
		return -ENOMEM;
	h->steps[power][step]++;
	add_summary(h, 1, value, value, value);
	return 0;
}

int ky_histogram_merge(struct ky_histogram *h, const struct ky_histogram *other)
{
	for (unsigned p = 0; p < KY_HISTOGRAM_POWERS; p++) {
		if (!other->steps[p])
			continue;
		if (!make_power(h, p))
			return -ENOMEM;
		for (unsigned i = 0; i < KY_HISTOGRAM_STEPS; i++)
			h->steps[p][i] += other->steps[p][i];
	}
	if (other->n)
		add_summary(h, other->n, other->sum, other->min, other->max);
	return 0;
}

uint64_t ky_histogram_permille(const struct ky_histogram *h, unsigned permille)
{
	uint64_t rank = h->n / 1000 * permille + (h->n % 1000 * permille + 999) / 1000, n = 0;

	if (!h->n || !rank)
		return h->n ? h->min : 0;
	if (rank >= h->n)
		return h->max;
	for (unsigned p = 0; p < KY_HISTOGRAM_POWERS; p++) {
		for (unsigned i = 0; h->steps[p] && i < KY_HISTOGRAM_STEPS; i++) {
			uint64_t width, begin;

			n += h->steps[p][i];
			if (n < rank)
				continue;
			begin = begin_of(p, i, &width);
			return KY_MIN(KY_MAX(begin + width / 2, h->min), h->max);
		}
	}
	return h->max;
}

uint64_t ky_histogram_count(const struct ky_histogram *h, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (unsigned p = 0; p < KY_HISTOGRAM_POWERS; p++) {
		for (unsigned i = 0; h->steps[p] && i < KY_HISTOGRAM_STEPS; i++) {
			uint64_t width, begin = begin_of(p, i, &width);

			if (begin >= from && begin < to)
				n += h->steps[p][i];
		}
	}
	return n;
}

void ky_histogram_deinit(struct ky_histogram *h)
{
	for (unsigned p = 0; p < KY_HISTOGRAM_POWERS; p++)
		free(h->steps[p]);
	*h = (struct ky_histogram){0};
}
