/* SPDX-License-Identifier: MIT */
/*
 * Stacks with a number, one on each line: "outer;inner NUMBER". Flame graphs are drawn from it.
 * Stacks are those of spans, with the time in ns that the spans had without those that began in
 * them, or those of the context callstack, with the number of events. Equal stacks are added.
 *
 * Two sides make lines with two numbers, for flame graphs of differences.
 */
#ifndef EXPORT_FOLDED_H
#define EXPORT_FOLDED_H

#include "base/htab.h"
#include "export/export.h"
#include "export/out.h"

#define KY_FOLDED_SIDES 2

/* Zeroed at first. */
struct ky_folded {
	struct ky_htab stacks;
	struct ky_buf text;
	bool has_spans, has_calls; /* the classes of the events read so far can have such stacks */
};

/*
 * Adds the stacks of the traces' part to a side. Spans are read if `stacks` is KY_STACKS_ANY and
 * there are classes of spans. Returns 0 or a negative errno.
 */
int ky_folded_read(struct ky_folded *f, const struct ky_tables *t,
	const struct ky_folded_options *o, size_t side);
/* Writes the lines, with the numbers of n_sides. Returns 0 or a negative errno. */
int ky_folded_write(const struct ky_folded *f, struct ky_out *out, size_t n_sides);
/* Returns a line that says why there is no stack. */
const char *ky_folded_why_none(const struct ky_folded *f, enum ky_stacks stacks);
void ky_folded_deinit(struct ky_folded *f);

#endif
