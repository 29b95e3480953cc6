/* SPDX-License-Identifier: MIT */
/*
 * Formats items as lines: the layout of babeltrace2's text output, byte for byte, and JSON. The
 * command line calls it. It is pure but for the local time zone.
 *
 * A trace may contain any bytes. Text keeps them as babeltrace2 does, which escapes control
 * characters in strings; `safe` also escapes other bytes that could control a terminal. JSON is
 * always valid UTF-8.
 */
#ifndef READER_FORMAT_H
#define READER_FORMAT_H

#include <time.h>

#include "reader/put.h"
#include "reader/field.h"

/* Bytes of text of one item or value. Without this, a few bytes of a trace may have any length. */
#define KY_TEXT_MAX ((size_t)64 << 20)

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

#define KY_SYMBOL_TEXT 1024

/* Finds functions at addresses, which the reader's options choose (show). */
struct ky_symbolizer {
	/* Writes the text of an address. Returns its length, or 0. Several threads call it. */
	size_t (*find)(void *arg, const struct ky_item *event, uint64_t address, bool is_return,
		char text[KY_SYMBOL_TEXT]);
	void *arg;
};

/* State from line to line. The caller zeroes it first. */
struct ky_format {
	bool safe;   /* for a terminal */
	bool colour; /* escape sequences, in text */
	enum ky_time_form time_form;
	int64_t origin_ns;
	const struct ky_shown_fields *fields; /* borrowed; NULL: all, by their scopes */
	const struct ky_symbolizer *symbols;  /* borrowed, or NULL */
	bool is_cut;			      /* JSON: complete_ns holds */
	bool had_time;			      /* last_ns holds */
	int64_t complete_ns; /* events before are marked: others of their time may be missing */
	int64_t last_ns;
	struct ky_second local, utc;
};

/* Appends [HH:MM:SS.nnnnnnnnn] (+D.DDDDDDDDD) HOST NAME: { CONTEXT }, { FIELDS } and a newline. */
void ky_format_text(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* Appends only the contexts and fields of that line, without a newline. */
void ky_format_fields(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* Appends a value as in that line. data: the bytes that it refers to. */
void ky_format_value(struct ky_buf *out, const struct ky_value *v, const uint8_t *data);
/* Appends {"timestamp": NS, ...} and a newline. */
void ky_format_json(struct ky_format *f, struct ky_buf *out, const struct ky_item *event);
/* Appends the fields of that object, as an object of their own, without a newline. */
void ky_format_json_fields(struct ky_buf *out, const struct ky_item *event);
/* Appends the line that reports a KY_ITEM_LOST_*, and a newline. */
void ky_format_lost(struct ky_format *f, struct ky_buf *out, const struct ky_item *lost);
/* Appends n bytes of text in quotes, as JSON. */
void ky_format_json_string(struct ky_buf *out, const char *text, size_t n);

/* --- for the two formats only --- */

/* Writes HH:MM:SS.nnnnnnnnn, local time, or YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ; at most 64 bytes. */
char *ky_put_time(struct ky_format *f, char *to, int64_t ns);
/* Seconds since 1970 as --begin and --end take them, with "@" if they are negative. */
char *ky_put_limit(char *to, int64_t ns);
char *ky_put_iso(struct ky_format *f, char *to, int64_t ns);
/* Returns the next label of an enumeration that matches v, from index *at on. NULL: no more. */
const char *ky_enum_label(const struct ky_node *n, uint64_t v, uint32_t *at);
/* Converts a string to UTF-8. The caller frees it. Returns NULL if there is no memory. */
char *ky_text_utf8(const struct ky_node *n, const struct ky_value *v, size_t *ret_len);
/* Returns the next flag of a bit map with a bit set in v, from index *at on. NULL: no more. */
const char *ky_flag_label(const struct ky_node *n, uint64_t v, uint32_t *at);

#endif
