/* SPDX-License-Identifier: MIT */
/*
 * Runs linked filters: begins here, in the thread that records, and continues in run.c. It is
 * inlined, because most events need only the first instruction of their filter.
 */
#ifndef FILTER_PASS_H
#define FILTER_PASS_H

#include "filter/filter.h"
#include "filter/insn.h"

/* A text that is being compared: always in one piece. */
struct ky_filter_span {
	const uint8_t *p;
	uint32_t len;
	bool measured; /* it may have got a NUL after it was measured: that is recorded as '#' */
};

union ky_filter_slot {
	union ky_filter_number number;
	struct ky_filter_span text;
};

/* A place in the payload. */
struct ky_filter_cursor {
	uint32_t piece, offset;
};

struct ky_filter_frame {
	const struct ky_filter_code *code;
	const struct kymo_piece *pieces;
	size_t n_pieces;
	unsigned n_anchors;	/* anchors that have been found */
	struct kymo_piece flat; /* see begin_walk */
	struct ky_filter_cursor anchors[KY_FILTER_ANCHORS_MAX];
	union ky_filter_slot v[KY_FILTER_DEPTH_MAX + 1];
	uint8_t context[2][KY_FILTER_CONTEXT_MAX];
};

/*
 * Returns true if the payload (as in kymo_record_fn) passes. Safe in signal handlers; never reads
 * beyond a piece.
 */
static inline bool ky_filter_pass(const void *code, const void *payload, size_t len,
	const struct kymo_piece *pieces, size_t n_pieces)
{
	const struct ky_filter_insn *first = ((const struct ky_filter_code *)code)->insns;
	const struct ky_filter_quick *quick = &((const struct ky_filter_code *)code)->quick;
	struct ky_filter_frame f;

	if (!n_pieces && len >= quick->end)
		return ky_filter_quick_pass(quick, payload);
	f.code = code;
	f.pieces = pieces;
	f.n_pieces = n_pieces;
	f.n_anchors = 0;
	if (ky_unlikely(n_pieces)) {
		payload = pieces->ptr;
		len = pieces->len;
	}
	return first->run(first, payload, len, &f);
}

#endif
