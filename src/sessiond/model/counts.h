/* SPDX-License-Identifier: MIT */
/*
 * The counts of a consumer: numbers of events, unless a comment says otherwise. Messages have them
 * under the same names.
 */
#ifndef SESSIOND_MODEL_COUNTS_H
#define SESSIOND_MODEL_COUNTS_H

#include <stdint.h>

/* Counts of a retired set, and of a session. */
#define SET_COUNTS(C)                                                                              \
	C(recorded)                                                                                \
	C(discarded)                                                                               \
	C(discarded_too_big)                                                                       \
	C(discarded_refused)                                                                       \
	C(discarded_no_slot)                                                                       \
	C(discarded_interrupted)                                                                   \
	C(unwritten)                                                                               \
	C(bytes)                                                                                   \
	C(packets)                                                                                 \
	C(n_quarantined) /* rings */                                                               \
	C(removed)	 /* of `recorded` */                                                       \
	C(cleared)	 /* likewise */                                                            \
	C(damaged)	 /* likewise: in files that were set apart */

#define EVENT_COUNTS(C)                                                                            \
	SET_COUNTS(C)                                                                              \
	C(overwritten)                                                                             \
	C(left_out)

struct event_counts {
#define COUNT(name) uint64_t name;
	EVENT_COUNTS(COUNT)
#undef COUNT
};

static inline void event_counts_add(struct event_counts *to, const struct event_counts *from)
{
#define COUNT(name) to->name += from->name;
	EVENT_COUNTS(COUNT)
#undef COUNT
}

#endif
