/* SPDX-License-Identifier: MIT */
/*
 * Lines of events, in order, to the standard output, put together by as many threads as there are
 * processors. Called by view, in one thread, which reads the trace meanwhile.
 *
 * That thread fills batches with items and their values. Whoever is free turns a batch into text:
 * another thread, or the reading one when it has nothing else to do, as it always is where there is
 * one processor only. The reading thread writes what is ready, in order; as batches are few and
 * limited, so is memory.
 */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "reader/format.h"

struct cli_lines;

/*
 * cursor: that the items come from; borrowed. like: what all lines are to have in common. NULL
 * without memory.
 */
struct cli_lines *cli_lines_new(struct ky_cursor *cursor, const struct ky_format *like, bool json);
/* Stops the threads; what was not written is lost. Before the cursor is closed. NULL is fine. */
void cli_lines_free(struct cli_lines *l);

/* Where the next item's values go, and the item; both are the reader's until cli_lines_add. */
struct ky_item *cli_lines_item(struct cli_lines *l, struct ky_values **ret_values);
/* The item is an event whose line is wanted. 0, -ENOMEM, or the error of writing, which stays. */
int cli_lines_add(struct cli_lines *l);
/*
 * Writes all lines of what was added. Likewise. What cli_lines_item returned stays where it is:
 * warnings come while the reader looks for the next item.
 */
int cli_lines_flush(struct cli_lines *l);

#endif
