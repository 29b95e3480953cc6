/* SPDX-License-Identifier: MIT */
/* Which findings of a comparison count, and which may be noise: docs/explain.md, "Tests". */
#ifndef EXPLAIN_VALIDITY_H
#define EXPLAIN_VALIDITY_H

#include "explain/difference.h"

/* Fills in what is known of each finding, and is_valid of those that count. 0 or -ENOMEM. */
int ky_validity_test(struct ky_difference *d);

#endif
