/* SPDX-License-Identifier: MIT */
/*
 * `kymo explain`: why are the slow instances of a span slow? Reads one trace, or two, compares slow
 * instances with typical ones, and says what it found. Called by the command line.
 */
#ifndef EXPLAIN_EXPLAIN_H
#define EXPLAIN_EXPLAIN_H

#include "base/buf.h"
#include "explain/explanation.h"

enum ky_explain_error {
	KY_EXPLAIN_E_SPAN = 1, /* there is no such span; see ky_source_spans */
	KY_EXPLAIN_E_PAIR,
};

/*
 * Returns 0, one of enum ky_explain_error with a line in why, or a negative errno.
 * ky_explanation_deinit in any case.
 */
int ky_explain_trace(
	struct ky_explanation *e, const struct ky_explain_question *q, char *why, size_t why_size);
void ky_explanation_deinit(struct ky_explanation *e);

/* The answer, for people and for programs. */
void ky_explanation_text(struct ky_buf *b, const struct ky_explanation *e);
void ky_explanation_json(struct ky_buf *b, const struct ky_explanation *e);

#endif
