/* SPDX-License-Identifier: MIT */
/*
 * The names of values of kernel events: flags, modes, reasons. The trace's index has them
 * (index/formats; docs/trace-format.md), as lines between the kernel's own texts:
 *
 *   # values<TAB>EVENT<TAB>FIELD<TAB>flags|values<TAB>MASK<TAB>VALUE=NAME<TAB>VALUE=NAME...
 *
 * Several lines may have parts of one field. Results of system calls have the names of errors.
 */
#ifndef READER_VALUES_H
#define READER_VALUES_H

#include "reader/layout.h"

/*
 * Chooses KY_SHOW_NAMED for the integers that have names; dir: of the trace. Memory is the arena's.
 * Returns 0 or -ENOMEM. An index that cannot be read has no names.
 */
int ky_values_choose(struct ky_layout *l, struct ky_arena *arena, const char *dir);
/* Writes "NAME|NAME" of a value. Returns the length, 0 if it has no name. */
size_t ky_named_text(const struct ky_named *n, uint64_t v, char *text, size_t size);

#endif
