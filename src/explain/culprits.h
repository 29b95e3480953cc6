/* SPDX-License-Identifier: MIT */
/* The threads that the waits of a finding are charged to: docs/explain.md, "The account". */
#ifndef EXPLAIN_CULPRITS_H
#define EXPLAIN_CULPRITS_H

#include "explain/difference.h"

#define KY_CULPRIT_MOST	  0.6  /* part of the time, of one that is named */
#define KY_CULPRIT_SECOND 0.25 /* of one that is named beside another */

/* A thread that a wait is charged to, in a span. */
struct ky_culprit {
	uint32_t thread, span;
	uint64_t caller;
	int64_t ns;
};

/* Waits of other threads in between: the first of them, as a name. */
struct ky_chain {
	uint32_t via;
	int64_t ns;
};

struct ky_culprits {
	KY_VEC(struct ky_culprit) v;	   /* the greatest first */
	KY_VEC(struct ky_chain) chains;	   /* one for each name */
	KY_VEC(struct ky_culprit) instead; /* ran while those in v could run; greatest first */
	int64_t instead_ns;
	int64_t ns;
	uint64_t mutex;	  /* the one that was waited for most */
	uint64_t second;  /* mutex that was waited for a quarter of the time or more; 0: none */
	double n_holders; /* for each wait */
};

/* Sums up whom the affected instances of a wait waited for. 0 or -ENOMEM. */
int ky_culprits_find(
	struct ky_culprits *ret, const struct ky_explain *x, const struct ky_finding *f);
void ky_culprits_deinit(struct ky_culprits *c);

/* Whether the thread stands for all programs that are not recorded. */
bool ky_culprit_is_others(const struct ky_explain *x, uint32_t thread);

#endif
