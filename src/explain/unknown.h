/* SPDX-License-Identifier: MIT */
/* Things that the trace does not show, and the options that record them: docs/explain.md. */
#ifndef EXPLAIN_UNKNOWN_H
#define EXPLAIN_UNKNOWN_H

#include "explain/explanation.h"

/* Fills in e->unknown, once the verdict is known. 0 or -ENOMEM. */
int ky_unknown_find(struct ky_explanation *e);

#endif
