/* SPDX-License-Identifier: MIT */
/* CPU samples of a finding (kymo record --sample): the functions that its threads execute. */
#ifndef EXPLAIN_EXECUTED_H
#define EXPLAIN_EXECUTED_H

#include "explain/difference.h"

/* Sets f->executed and f->is_executed, if there are samples. 0 or -ENOMEM. */
int ky_executed_find(const struct ky_difference *d, struct ky_finding *f);

#endif
