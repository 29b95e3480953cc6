/* SPDX-License-Identifier: MIT */
/* Findings in words: docs/explain.md, "Sentences". */
#ifndef EXPLAIN_SENTENCE_H
#define EXPLAIN_SENTENCE_H

#include "base/buf.h"
#include "explain/difference.h"

/* Fills in f->clause, without the condition, and adds to f->evidence. 0 or -ENOMEM. */
int ky_sentence_make(struct ky_explain *x, struct ky_finding *f);
/* "shop:checkout;db:query, between A and B": where a finding is, without saying why. */
void ky_sentence_place(struct ky_buf *b, const struct ky_explain *x, const struct ky_finding *f);
/* Spans from the instance down to the component, without the first `skip` of them. */
void ky_sentence_path(
	struct ky_buf *b, const struct ky_explain *x, uint32_t component, unsigned skip);

#endif
