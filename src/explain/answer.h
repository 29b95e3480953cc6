/* SPDX-License-Identifier: MIT */
/* Which findings are the answer, and the first line that says so: docs/explain.md. */
#ifndef EXPLAIN_ANSWER_H
#define EXPLAIN_ANSWER_H

#include "explain/explanation.h"

#define KY_MAX_CLAUSES	3
#define KY_MIN_NET_LOAD .1 /* part of the extra time that it makes up */

/* The share of the extra time that shown findings have together. */
double ky_answer_share(const struct ky_difference *d);
/* The findings that the sentence names, the first one first; none is much smaller. Their number. */
size_t ky_answer_find_top(
	const struct ky_difference *d, const struct ky_finding *top[KY_MAX_CLAUSES]);
/*
 * Whether it is ready while threads run that have the same span. Beside a load, such peers queue
 * for the processors that it leaves to them, whatever they do.
 */
bool ky_answer_is_queue(const struct ky_explain *x, const struct ky_finding *f);
/* Whether it says why instances are slow. */
bool ky_answer_has_causes(const struct ky_comparison *c);
/* How much longer other programs run instead of slow instances than of typical ones. */
double ky_answer_extra_load(const struct ky_difference *d);

/* Whether times are without those in which other programs ran. */
bool ky_explanation_is_net(const struct ky_explanation *e);
/* The mean time in which other programs ran instead of slow, or of typical, instances. */
double ky_explanation_load(const struct ky_difference *d, bool of_typical);

/* Decides on e->verdict, and appends the first line. */
void ky_answer_put(struct ky_buf *b, struct ky_explanation *e);

#endif
