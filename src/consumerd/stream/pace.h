/* SPDX-License-Identifier: MIT */
/*
 * How fast writers fill a source, and how much of it is worth one write.
 *
 * The consumer lets a slowly filled source that can grow fill to the half, and sleeps until then.
 * So it makes few large writes, which bypass the page cache if possible. A writer that suddenly
 * becomes fast finds the other half free, and then what the source can grow to: the consumer looks
 * again before the fastest has taken that. A source that cannot grow is written in pieces of an
 * eighth: the rest is for the time in which the consumer gets no processor. A source that fills
 * fast is written block by block, into the page cache, which takes them without waiting for the
 * disk. A flush every second limits how long data waits.
 */
#ifndef CONSUMERD_STREAM_PACE_H
#define CONSUMERD_STREAM_PACE_H

#include "consumerd/source/source.h"

/*
 * A batch worth waiting for: a write that bypasses the page cache costs as much as 500 KB in it.
 */
#define PACE_BATCH_BYTES (1u << 20)
/* The smallest that bypasses the page cache at all. */
#define PACE_SMALL_BYTES (1u << 18)

struct pace {
	uint64_t looked_ns;
	uint64_t
		fill_ns; /* how long writers take to fill the source: falls at once, rises slowly */
};

void pace_init(struct pace *p, uint64_t now_ns);
/* Updates the pace: n_bytes were written since the last look. */
void pace_measure(struct pace *p, const struct source *s, uint64_t n_bytes, uint64_t now_ns);
/* Returns the time that a write may take: until writers wait for room; 0 if they do soon. */
uint64_t pace_spare_ns(const struct pace *p, const struct source *s);
/* Returns true if writers have left enough blocks for one write. */
bool pace_is_due(const struct pace *p, const struct source *s);
/*
 * Returns the time after which the source should be looked at again. due: all that writers have
 * left is written now.
 */
uint64_t pace_wait_ns(const struct pace *p, const struct source *s, bool due);

#endif
