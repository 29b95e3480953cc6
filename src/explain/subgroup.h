/* SPDX-License-Identifier: MIT */
/*
 * A part of the slow instances that a value of a field, a size or a position picks out. Used where
 * nothing explains the slow ones as a whole: several causes, or the machine's noise, may be mixed.
 */
#ifndef EXPLAIN_SUBGROUP_H
#define EXPLAIN_SUBGROUP_H

#include "explain/groups.h"

/*
 * Finds the largest part of the group's slow instances whose value makes most instances slow.
 * all: a sample of all instances. Returns 0 with *ret filled in (n_slow is 0 if there is none), or
 * -ENOMEM. *ret's arrays are the caller's.
 */
int ky_subgroup_find(struct ky_group *ret, const struct ky_explain *x, const struct ky_group *group,
	struct ky_instance *const *all, size_t n_all);

#endif
