/* SPDX-License-Identifier: MIT */
/*
 * Conditions that the affected instances of a finding have in common and typical ones have not:
 * values and sizes of fields, threads, positions, times, company (docs/explain.md, "Conditions").
 */
#ifndef EXPLAIN_CONDITIONS_H
#define EXPLAIN_CONDITIONS_H

#include "explain/difference.h"

/*
 * Fills in f->conditions, the one for the sentence first. all: instances of which the effect of a
 * field is estimated, in order of their begins. 0 or -ENOMEM.
 */
int ky_conditions_find(struct ky_difference *d, struct ky_finding *f,
	struct ky_instance *const *all, size_t n_all);

#endif
