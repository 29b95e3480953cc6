/* SPDX-License-Identifier: MIT */
/*
 * From a value to the ranges that hold it, in logarithmic time: labels of enumerations, options of
 * variants. Ranges may overlap; the first ones count. Built once by the parsers of metadata and the
 * layout compiler.
 */
#ifndef READER_SEGMENTS_H
#define READER_SEGMENTS_H

#include "reader/arena.h"

/* Values lo .. hi, both included; compared as signed or unsigned numbers. */
struct ky_range {
	uint64_t lo, hi;
};

/* Values for which the same ranges hold. */
struct ky_segment {
	uint64_t lo, hi;
	uint32_t first, n; /* indexes of the ranges: ky_segments.indexes[first], in rising order */
};

struct ky_segments {
	struct ky_segment *v; /* do not overlap; sorted */
	uint32_t *indexes;
	size_t n;
	bool is_signed;
};

/*
 * Builds the segments of n ranges, with at most max ranges for each segment. They live in the
 * arena. One end of a range may be a number that the type cannot have: as a number of the type, it
 * is on the wrong side of the other end. Returns 0 or -ENOMEM.
 */
int ky_segments_build(struct ky_segments *s, struct ky_arena *arena, const struct ky_range *ranges,
	size_t n, bool is_signed, unsigned max);
/* NULL when no range holds the value. */
const struct ky_segment *ky_segments_find(const struct ky_segments *s, uint64_t value);

#endif
