/* SPDX-License-Identifier: MIT */
/* Limits how often something happens: so many times at once, and so many in a second. */
#ifndef WEB_BUCKET_H
#define WEB_BUCKET_H

#include "base/util.h"

/* Zeroed at first. */
struct ky_bucket {
	double n;   /* how many times are left */
	int64_t ns; /* of the last look; 0: none yet */
};

/* Returns false if it happens too often. now_ns: of a clock that never falls, more than 0. */
static inline bool ky_bucket_take(struct ky_bucket *b, int64_t now_ns, double burst, double rate)
{
	b->n = b->ns ? KY_MIN(b->n + (double)(now_ns - b->ns) * 1e-9 * rate, burst) : burst;
	b->ns = now_ns;
	if (b->n < 1)
		return false;
	b->n--;
	return true;
}

#endif
