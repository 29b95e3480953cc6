/* SPDX-License-Identifier: MIT */
#include "analysis/histogram.h"

#define STEP_BITS     10
#define MANTISSA_BITS 52   /* of a double */
#define MAX_EXPONENT  2047 /* infinity */

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
	if (power >= h->n_powers) {
		uint64_t **more = reallocarray(h->steps, power + 1, sizeof(*more));

		if (!more)
			return false;
		for (h->steps = more; h->n_powers <= power; h->n_powers++)
			h->steps[h->n_powers] = NULL;
	}
	if (!h->steps[power])
		h->steps[power] = calloc(KY_HISTOGRAM_STEPS, sizeof(uint64_t));
	return h->steps[power];
}

int ky_histogram_add(struct ky_histogram *h, uint64_t value)
{
	unsigned step, power = power_of(value, &step);

	if (!make_power(h, power))
		return -ENOMEM;
	h->steps[power][step]++;
	h->min = h->n ? KY_MIN(h->min, value) : value;
	h->max = h->n ? KY_MAX(h->max, value) : value;
	h->n++;
	h->sum += value;
	return 0;
}

/* The exponent of a double is its power, and the highest bits of the mantissa are its step. */
int ky_histogram_add_float(struct ky_histogram *h, double value)
{
	uint64_t bits;
	unsigned power;

	memcpy(&bits, &value, sizeof(bits));
	bits &= INT64_MAX; /* 0 has a sign */
	power = (unsigned)(bits >> MANTISSA_BITS);
	if (!make_power(h, power))
		return -ENOMEM;
	h->steps[power][bits >> (MANTISSA_BITS - STEP_BITS) & (KY_HISTOGRAM_STEPS - 1)]++;
	h->n++;
	return 0;
}

/* Returns the power of the number of this rank, which counts from 1. */
static unsigned find_rank(const struct ky_histogram *h, uint64_t rank, unsigned *ret_step)
{
	uint64_t n = 0;

	*ret_step = 0;
	for (unsigned p = 0; p < h->n_powers; p++) {
		for (unsigned i = 0; h->steps[p] && i < KY_HISTOGRAM_STEPS; i++) {
			n += h->steps[p][i];
			if (n < rank)
				continue;
			*ret_step = i;
			return p;
		}
	}
	return 0;
}

static uint64_t rank_of(const struct ky_histogram *h, unsigned permille)
{
	return h->n / 1000 * permille + (h->n % 1000 * permille + 999) / 1000;
}

uint64_t ky_histogram_permille(const struct ky_histogram *h, unsigned permille)
{
	uint64_t rank = rank_of(h, permille), begin, width;
	unsigned power, step;

	if (!h->n || !rank)
		return h->n ? h->min : 0;
	if (rank >= h->n)
		return h->max;
	power = find_rank(h, rank, &step);
	begin = begin_of(power, step, &width);
	return KY_MIN(KY_MAX(begin + width / 2, h->min), h->max);
}

static double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

double ky_histogram_permille_float(const struct ky_histogram *h, unsigned permille)
{
	unsigned step, power = find_rank(h, KY_MAX(rank_of(h, permille), (uint64_t)1), &step);
	uint64_t begin = ((uint64_t)power << STEP_BITS | step) << (MANTISSA_BITS - STEP_BITS);

	/* The middle of the step; 0 and infinity are alone in theirs. */
	if (!begin || power == MAX_EXPONENT)
		return double_of(begin);
	return double_of(begin | (uint64_t)1 << (MANTISSA_BITS - STEP_BITS - 1));
}

uint64_t ky_histogram_bar(const struct ky_histogram *h, unsigned bar, uint64_t *ret_from)
{
	uint64_t from = bar ? (uint64_t)1 << (bar - 1) : 0, n = 0;

	for (unsigned p = 0; p < h->n_powers; p++) {
		for (unsigned i = 0; h->steps[p] && i < KY_HISTOGRAM_STEPS; i++) {
			uint64_t width, begin = begin_of(p, i, &width);

			if (begin >= from && begin - from < KY_MAX(from, (uint64_t)1))
				n += h->steps[p][i];
		}
	}
	*ret_from = from;
	return n;
}

uint64_t ky_histogram_bar_float(const struct ky_histogram *h, unsigned bar, double *ret_from)
{
	uint64_t n = 0;

	for (unsigned i = 0; h->steps[bar] && i < KY_HISTOGRAM_STEPS; i++)
		n += h->steps[bar][i];
	*ret_from = double_of((uint64_t)bar << MANTISSA_BITS);
	return n;
}

void ky_histogram_deinit(struct ky_histogram *h)
{
	for (unsigned p = 0; p < h->n_powers; p++)
		free(h->steps[p]);
	free(h->steps);
	*h = (struct ky_histogram){0};
}
