/* SPDX-License-Identifier: MIT */
/*
 * Reads the items of a cursor ahead, in a thread of its own, for callers that must take them one
 * after another: they have the same items in the same order, while another processor decodes. With
 * one processor, the caller's thread reads.
 */
#ifndef ANALYSIS_AHEAD_H
#define ANALYSIS_AHEAD_H

#include "reader/cursor.h"

struct ky_ahead;

/*
 * The cursor is borrowed, and nobody else uses it until the end, an error, or ky_ahead_free.
 * with_thread: false if it matters how far the cursor goes. NULL without memory.
 */
struct ky_ahead *ky_ahead_new(struct ky_cursor *cursor, bool with_thread);
/* As ky_cursor_next. The item has its values and no decoder (d), and lives until the next call. */
int ky_ahead_next(struct ky_ahead *a, const struct ky_item **ret_item);
/* Ends the thread; items may remain. a may be NULL. Returns NULL. */
struct ky_ahead *ky_ahead_free(struct ky_ahead *a);

#endif
