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

#include <time.h>

#include "reader/put.h"
#include "reader/field.h"

/* Text of the second that was asked for last. */
struct ky_second {
	size_t len; /* 0: none yet */
	int64_t begin_ns;
	char text[32];
};

/* How text shows times. */
enum ky_time_form {
	KY_TIME_LOCAL, /* HH:MM:SS.N, as babeltrace2 */
	KY_TIME_UTC,
	KY_TIME_DATE, /* YYYY-MM-DD HH:MM:SS.N, local time */
	KY_TIME_SECONDS,
	KY_TIME_RELATIVE, /* seconds from origin_ns */
};

/* The fields that alone are shown, of each class of events. */
struct ky_shown_fields {
	const char *const *names;
	size_t n;
	struct ky_field_ref *const
		*of_class; /* n by the index of the class; NULL: it is not shown */
};

/* State from line to line. Zeroed at first. */
struct ky_format {
	bool safe;   /* for a terminal */
	bool colour; /* escape sequences, in text */
	enum ky_time_form time_form;
	int64_t origin_ns;
	const struct ky_shown_fields *fields; /* borrowed; NULL: all, by their scopes */
	bool is_cut;			      /* JSON: complete_ns holds */
	bool had_time;			      /* last_ns holds */
	int64_t complete_ns; /* events before are marked: others of their time may be missing */
	int64_t last_ns;
	struct ky_second local, utc;
};

/* [HH:MM:SS.nnnnnnnnn] (+D.DDDDDDDDD) HOST NAME: { CONTEXT }, { FIELDS } and a newline. */
void ky_format_text(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* Of that line contexts and fields only, without a newline. */
void ky_format_fields(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* A value as in that line. data: what it refers to. */
void ky_format_value(struct ky_buf *out, const struct ky_value *v, const uint8_t *data);
/* {"timestamp": NS, ...} and a newline. */
void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* The line that tells of a KY_ITEM_LOST_*, and a newline. */
void ky_format_lost(struct ky_format *f, struct ky_buf *out, const struct ky_item *lost);
/* "text" in quotes, as JSON. n bytes. */
void ky_format_json_string(struct ky_buf *out, const char *text, size_t n);

/* --- for the two formats only --- */

/* HH:MM:SS.nnnnnnnnn, local time, and YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ; 64 bytes are room enough. */
char *ky_put_time(struct ky_format *f, char *to, int64_t ns);
char *ky_put_iso(struct ky_format *f, char *to, int64_t ns);
/* The next label of an enumeration that fits the value, from index *at on; NULL: no more. */
const char *ky_enum_label(const struct ky_node *n, uint64_t v, uint32_t *at);
/* A string of an encoding other than UTF-8, in UTF-8; the caller frees it. NULL without memory. */
char *ky_text_utf8(const struct ky_node *n, const struct ky_value *v, size_t *ret_len);
/* The next flag of a bit map that has a bit set in the value, from index *at on; NULL: no more. */
const char *ky_flag_label(const struct ky_node *n, uint64_t v, uint32_t *at);

#endif
