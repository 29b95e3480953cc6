/* SPDX-License-Identifier: MIT */
#ifndef EXPLAIN_OUTLIERS_H
#define EXPLAIN_OUTLIERS_H

#include "explain/explanation.h"

/*
 * A few instances that are far longer than all others, in one span: too few to compare, but what
 * somebody looks for who saw them. Adds a clause to the first line, unless it names the span.
 */
void ky_outliers_put(struct ky_buf *b, const struct ky_explanation *e);

#endif
