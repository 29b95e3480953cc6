/* SPDX-License-Identifier: MIT */
/* The traces of the present chunk, one for each directory of ring sets. */
#ifndef CONSUMERD_TRACES_H
#define CONSUMERD_TRACES_H

#include "consumerd/state.h"

struct trace;

/*
 * Returns the trace of the set's directory. The first set of a trace brings the metadata log: then
 * it takes *log_fd. Returns NULL if allocation fails.
 */
struct trace *traces_get(struct consumerd *c, const struct ky_cons_ring_set *m, int *log_fd);

#endif
