/* SPDX-License-Identifier: MIT */
/*
 * Items as lines: the layout of babeltrace2's text output, byte for byte, and JSON. Called by the
 * command line. Pure but for the local time zone.
 *
 * What stands in a trace may be anything. Text keeps it as babeltrace2 does, which escapes control
 * characters in strings; `safe` also makes harmless what else could steer a terminal. JSON is
 * always valid UTF-8.
 */
#ifndef READER_FORMAT_H
#define READER_FORMAT_H

#include "base/buf.h"
#include "reader/reader.h"

/* State from line to line. Zeroed at first. */
struct ky_format {
	bool safe;     /* for a terminal */
	bool had_time; /* last_ns holds */
	int64_t last_ns;
	/* text of the second that was asked for last */
	bool had_second;
	int64_t second;
	char second_text[32];
};

/* [HH:MM:SS.nnnnnnnnn] (+D.DDDDDDDDD) HOST NAME: { CONTEXT }, { FIELDS } and a newline. */
void ky_format_text(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* {"timestamp": NS, ...} and a newline. */
void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* The line that tells of a KY_ITEM_LOST_*, and a newline. */
void ky_format_lost(struct ky_format *f, struct ky_buf *out, const struct ky_item *lost);
/* HH:MM:SS.nnnnnnnnn, local time. */
void ky_format_time(struct ky_format *f, struct ky_buf *out, int64_t ns);
/* YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ */
void ky_format_iso(struct ky_buf *out, int64_t ns);
/* "text" in quotes, as JSON. n bytes. */
void ky_format_json_string(struct ky_buf *out, const char *text, size_t n);

/* --- for the two formats only --- */

void ky_format_u64(struct ky_buf *out, uint64_t v);
void ky_format_i64(struct ky_buf *out, int64_t v);
/* .nnnnnnnnn */
void ky_format_fraction(struct ky_buf *out, uint32_t ns);
/* The next label of an enumeration that fits the value, from index *at on; NULL: no more. */
const char *ky_enum_label(const struct ky_node *n, uint64_t v, uint32_t *at);

static inline void ky_format_char(struct ky_buf *out, char c)
{
	ky_buf_append(out, &c, 1);
}

#endif
