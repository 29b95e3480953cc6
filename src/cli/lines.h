/* SPDX-License-Identifier: MIT */
/* Prints lines of events, in order, on standard output, in large pieces. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include "reader/format.h"

struct cli_lines {
	struct ky_format format; /* the state after the line before */
	bool json;
	struct ky_item item;
	struct ky_values values;
	struct ky_buf text; /* text that is not written yet */
	int error;	    /* of writing; permanent */
};

/* like: the format of all lines. */
void cli_lines_init(struct cli_lines *l, const struct ky_format *like, bool json);
/* Drops lines that are not written. */
void cli_lines_deinit(struct cli_lines *l);

/* Adds the line of l->item, an event. Returns 0, -ENOMEM, or the error of writing. */
int cli_lines_add(struct cli_lines *l);
/* Writes all lines that were added. Returns as cli_lines_add. */
int cli_lines_flush(struct cli_lines *l);

/* Appends the line of an event: a few bytes of a trace may have megabytes of text. */
void cli_lines_format(
	struct ky_format *f, struct ky_buf *to, const struct ky_item *item, bool json);
/* Writes all of it on standard output. Returns 0 or a negative errno. */
int cli_lines_write(const char *data, size_t n);

#endif
