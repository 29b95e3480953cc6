/* SPDX-License-Identifier: MIT */
/*
 * The quota limits the memory that the daemon makes for the applications of one user: buffers and
 * metadata, which outlive these applications. The daemon checks it when a ring set is to be made.
 * It makes a set that exceeds the quota later, when other sets of the user have been freed. The
 * set's applications run untraced until then.
 *
 * Each registry keeps the sum of its sets. Buffers of CPUs count as a whole, with the room for
 * bursts, because recording may fill all of it. Each set may have an eighth of what the others left
 * of half of the quota for bursts: so there is room for many sets. Buffers of threads have
 * addresses for many more threads than there are: the prepared ones count, or the memory in use if
 * that is more. The daemon measures these once a second, and withdraws the largest set of a user
 * beyond the quota. In between, each counts as it was measured last: if the daemon asked the kernel
 * about all sets whenever a program gets one, the time would be quadratic in the number of
 * programs.
 */
#ifndef SESSIOND_MODEL_QUOTA_H
#define SESSIOND_MODEL_QUOTA_H

#include "sessiond/model/env.h"

struct ring_set;

/* Returns the default quota: half of the machine's memory. */
uint64_t quota_default(void);
/* Parses the option: bytes, K, M or G may follow. 0 or -EINVAL. */
int quota_parse(const char *text, uint64_t *ret_bytes);
/* Returns whether the user may have so many bytes more, of buffers in the kernel. */
bool quota_allows(struct env *e, uid_t uid, uint64_t bytes);
/* Charges the set, which has memory, and looks at it from now on, if it may grow. */
void quota_watch(struct ring_set *set);
/* Keeps to the limit from now on: an observer. Once for each env. */
void quota_init(struct env *e, uint64_t max_bytes);

#endif
