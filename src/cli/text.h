/* SPDX-License-Identifier: MIT */
/*
 * Text that people type or read: sizes, log levels, names that come near, safe output. Pure.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "base/buf.h"
#include "base/loglevel.h"
#include "base/text.h"

/* "1500 ms", "20 s"; gap: between number and unit. The result is in buf. */
const char *cli_format_usec(char *buf, size_t size, uint64_t usec, const char *gap);
/* "16.0 MiB"; the result is in buf. */
const char *cli_format_size(char *buf, size_t size, uint64_t bytes);

/*
 * A log level by name, in any case, with or without the prefixes KYMO_ and TRACE_, or by number
 * 0 .. 14. -EINVAL when it is none.
 */
int cli_parse_loglevel(const char *text, int *ret_level);
/* "DEBUG_LINE"; NULL for numbers that are no level. */
const char *cli_loglevel_name(int64_t level);

/*
 * The candidate (of a NULL-terminated list) that `text` was probably meant to be, or NULL when none
 * comes near: at most a third of its letters inserted, deleted, replaced or swapped with a
 * neighbour.
 */
const char *cli_nearest(const char *text, const char *const *candidates);

/*
 * Appends text from others so that it can do nothing to a terminal: control characters, the
 * characters that turn the direction of writing, and bytes that are no UTF-8 become \xNN.
 */
void cli_escape(struct ky_buf *to, const char *text);
/*
 * The same for a JSON text: what could do something to a terminal becomes \uNNNN, and bytes that
 * are no UTF-8 become U+FFFD. Such characters are only in strings; white space stays as it is.
 */
void cli_escape_json(struct ky_buf *to, const char *json);
/* A line of a daemon's log without the program's name. */
const char *cli_log_text(const char *line);
/*
 * The last line of text that is not empty, without its end ("\n", or "\r\n" as of ssh); "" when
 * there is none. Changes text.
 */
const char *cli_last_line(char *text);

#endif
