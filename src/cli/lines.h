/* SPDX-License-Identifier: MIT */
/*
 * Prints lines of events, in order, on standard output. As many threads as there are processors
 * format them, if there are many lines and that is faster than one thread. view calls this in one
 * thread, which reads the trace at the same time.
 *
 * The reading thread fills batches with items and their values. A free thread formats a batch:
 * another thread, or the reading one if it has nothing else to do. With one processor, that is
 * always the reading one. The reading thread writes formatted batches in order. The number and size
 * of the batches are limited, and so is memory.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "reader/format.h"

struct cli_lines;

/*
 * Makes the printer. cursor: the source of the items; borrowed. like: the format of all lines.
 * Returns NULL if there is no memory.
 */
struct cli_lines *cli_lines_new(struct ky_cursor *cursor, const struct ky_format *like, bool json);
/* Stops the threads, and drops unwritten lines. Call it before the cursor closes. l may be NULL. */
void cli_lines_free(struct cli_lines *l);

/*
 * Returns room for the next item, and in *ret_values for its values. The reader uses both until
 * cli_lines_add.
 */
struct ky_item *cli_lines_item(struct cli_lines *l, struct ky_values **ret_values);
/* Adds the item, an event. Returns 0, -ENOMEM, or the error of writing, which is permanent. */
int cli_lines_add(struct cli_lines *l);
/*
 * Writes all lines that were added. Returns as cli_lines_add. The item of cli_lines_item stays
 * valid, because warnings may come while the reader looks for the next item.
 */
int cli_lines_flush(struct cli_lines *l);

#endif
