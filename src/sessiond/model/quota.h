/* SPDX-License-Identifier: MIT */
/*
 * How much memory the daemon makes for the programs of one user: buffers and metadata, which outlive these programs. Asked
 * when a ring set is to be made; a set that its user may not have is made when others of the user's have gone, and its
 * programs run untraced until then.
 *
 * Nothing is kept in step: what there is, is added up. Buffers of CPUs count whole, as recording fills them all. Of
 * threads' buffers, which have addresses for many more than there are threads, those count that are made ready, or what is
 * in use if that is more.
 */
#ifndef SESSIOND_MODEL_QUOTA_H
#define SESSIOND_MODEL_QUOTA_H

#include "sessiond/model/env.h"

/* What a user may have unless the daemon is told: half of the machine's memory. */
uint64_t quota_default(void);
/* What the daemon is told: bytes, or such with K, M or G. 0 or -EINVAL. */
int quota_parse(const char *text, uint64_t *ret_bytes);
/* Keeps to the limit from now on: an observer. Once for each env. */
void quota_init(struct env *e, uint64_t max_bytes);

#endif
