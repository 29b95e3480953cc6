/* SPDX-License-Identifier: MIT */
/*
 * A limit of bytes a second. The sender notes what it has sent, and sends the next piece when the
 * time that this takes at the limit is over. So the mean stays below the limit, and a pause is not
 * made up for.
 */
#ifndef SHIP_PACE_H
#define SHIP_PACE_H

#include "base/util.h"

#define PACE_MIN 1024u /* bytes a second, so that no end takes the other one for dead */

struct pace {
	uint64_t rate; /* 0: no limit */
	uint64_t next_ns;
};

static inline void pace_note(struct pace *p, uint64_t now_ns, size_t n)
{
	const uint64_t begin = KY_MAX(p->next_ns, now_ns);

	if (p->rate)
		p->next_ns = begin + (uint64_t)((double)n * 1e9 / (double)p->rate);
}

static inline uint64_t pace_rest_ns(const struct pace *p, uint64_t now_ns)
{
	return p->next_ns > now_ns ? p->next_ns - now_ns : 0;
}

/* Returns how many of n bytes may be sent at once: those of a tenth of a second, or some more. */
static inline size_t pace_piece(const struct pace *p, size_t n)
{
	return p->rate ? KY_MIN(n, (size_t)(p->rate / 10 + 1)) : n;
}

#endif
