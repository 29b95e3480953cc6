/* SPDX-License-Identifier: MIT */
/* Findings in words: docs/explain.md, "Sentences". */
#ifndef EXPLAIN_SENTENCE_H
#define EXPLAIN_SENTENCE_H

#include "base/buf.h"
#include "explain/difference.h"

/* A thread that a wait is charged to, in a span. */
struct ky_culprit {
	uint32_t thread, span;
	uint64_t caller;
	int64_t ns;
};

struct ky_culprits {
	KY_VEC(struct ky_culprit) v;	   /* the greatest first */
	KY_VEC(struct ky_blame) via;	   /* chains */
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

/* Fills in f->clause, without the condition, and adds to f->evidence. 0 or -ENOMEM. */
int ky_sentence_make(struct ky_explain *x, struct ky_finding *f);
/* "shop:checkout;db:query, between A and B": where a finding is, without saying why. */
void ky_sentence_place(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f);
/* Spans from the instance down to the component, without the first `skip` of them. */
void ky_sentence_path(
	struct ky_buf *b, const struct ky_explain *x, uint32_t component, unsigned skip);

#endif
