/* SPDX-License-Identifier: MIT */
/*
 * Metadata of a trace: a tree of types and the blocks trace, env, clock, stream and event. The
 * parsers (reader/tsdl.h) make it, and share the functions.
 *
 * Types are as written: what depends on where a type stands (byte order of the trace, lengths of
 * sequences, tags of variants) is resolved by the layout compiler (reader/layout.h).
 */
#ifndef READER_TYPES_H
#define READER_TYPES_H

#include "reader/trace-clock.h"
#include "reader/names.h"
#include "reader/segments.h"

enum ky_type_kind {
	KY_TYPE_INT,
	KY_TYPE_ENUM, /* an integer with labels */
	KY_TYPE_FLOAT,
	KY_TYPE_STRING,
	KY_TYPE_ARRAY,
	KY_TYPE_SEQUENCE,
	KY_TYPE_STRUCT,
	KY_TYPE_VARIANT,
};

enum ky_byte_order {
	KY_ORDER_NATIVE, /* the trace's */
	KY_ORDER_LE,
	KY_ORDER_BE,
};

/* The start of the search for a field. */
enum ky_origin {
	KY_FROM_NAME,  /* TSDL: the first words of the path are a scope's, or else look around */
	KY_FROM_HERE,  /* the structure that the field is in, or one around it */
	KY_FROM_SCOPE, /* this and the following: scopes, in the order of packets and events */
};

/* How an integer is shown: of CTF 2, or because the user of the reader asked for symbols. */
enum ky_show {
	KY_SHOW_NUMBER,
	KY_SHOW_BOOL,
	KY_SHOW_BITS,
	KY_SHOW_FLAGS, /* the labels of bits that are set; ranges are bit numbers */
	KY_SHOW_ADDRESS,
	KY_SHOW_RETURN, /* the address behind a call */
	KY_SHOW_NAMED,	/* the names of a value or of its bits (reader/values.h) */
};

/* Of strings. CTF 1.8 has the first only. */
enum ky_encoding {
	KY_UTF_8,
	KY_UTF_16LE,
	KY_UTF_16BE,
	KY_UTF_32LE,
	KY_UTF_32BE,
};

/* The role of a field of CTF 2: see enum ky_role. */
enum ky_tsdl_role {
	KY_TSDL_ROLE_NONE,
	KY_TSDL_ROLE_MAGIC,
	KY_TSDL_ROLE_UUID,
	KY_TSDL_ROLE_STREAM_CLASS,
	KY_TSDL_ROLE_STREAM,
	KY_TSDL_ROLE_TIME,
	KY_TSDL_ROLE_END_TIME,
	KY_TSDL_ROLE_CONTENT_SIZE,
	KY_TSDL_ROLE_PACKET_SIZE,
	KY_TSDL_ROLE_SEQ,
	KY_TSDL_ROLE_DISCARDED,
	KY_TSDL_ROLE_EVENT_CLASS,
};

struct ky_member {
	const char *name; /* interned, as all names below */
	const struct ky_type *type;
};

struct ky_type {
	uint8_t kind;	    /* enum ky_type_kind */
	uint8_t size;	    /* INT, ENUM: 1 .. 64; FLOAT: 32, 64 bits */
	uint8_t base;	    /* INT, ENUM: 2, 8, 10, 16 */
	uint8_t byte_order; /* enum ky_byte_order */
	bool is_signed;
	bool is_text;	     /* INT: a character */
	bool is_leb;	     /* INT: of as many bytes as it needs (LEB128) */
	bool is_blob;	     /* ARRAY, SEQUENCE: bytes without a meaning of their own */
	bool is_optional;    /* VARIANT: with one option, or none */
	uint8_t show;	     /* INT: enum ky_show */
	uint8_t encoding;    /* STRING, ARRAY and SEQUENCE of characters: enum ky_encoding */
	uint16_t roles;	     /* INT, ARRAY: set of 1 << enum ky_tsdl_role */
	uint8_t origin;	     /* of path: enum ky_origin */
	uint32_t n_up;	     /* KY_FROM_HERE: so many structures further out */
	uint32_t align;	     /* bits, a power of two; STRUCT: what was asked for at least */
	uint32_t n;	     /* labels or members */
	const char *clock;   /* INT: name of the clock it shows, or NULL */
	const char **labels; /* ENUM: of each of its ranges */
	const struct ky_range *ranges;	 /* ENUM; VARIANT: of the tag, if it needs no labels */
	const uint32_t *options;	 /* VARIANT: which option each range chooses */
	uint32_t n_ranges;		 /* VARIANT: 0 if the labels of its tag select */
	struct ky_segments segments;	 /* ENUM: of the ranges, if there are many */
	const struct ky_member *members; /* STRUCT, VARIANT */
	const struct ky_type *elem;	 /* ARRAY, SEQUENCE */
	uint64_t count;			 /* ARRAY */
	/* SEQUENCE: its length; VARIANT: its tag, or NULL: words of a.b.c, then NULL */
	const char *const *path;
};

struct ky_env {
	const char *name;
	const char *text;   /* NULL: a number */
	const char *digits; /* of the number; NULL: a text */
	int64_t number;
};

struct ky_tsdl_stream {
	uint64_t id;
	bool has_id;
	const char *clock; /* CTF 2: of its times, or NULL */
	const struct ky_type *event_header, *event_context, *packet_context; /* or NULL */
};

struct ky_tsdl_event {
	const char *name; /* or NULL */
	uint64_t id, stream_id;
	bool has_stream_id;
	int loglevel; /* -1: none */
	const struct ky_type *context, *fields;
};

struct ky_tsdl {
	struct ky_arena arena; /* all strings, types and arrays below */
	struct ky_names names;
	bool is_ctf2; /* names are shown as they are; roles of fields are explicit */
	bool is_cut;  /* the text ended within a block or comment, which was left out */
	bool big_endian;
	bool has_uuid;
	uint8_t uuid[16];
	const struct ky_type *packet_header; /* or NULL */
	struct ky_env *env;
	struct ky_trace_clock *clocks;
	struct ky_tsdl_stream *streams; /* sorted by id */
	struct ky_tsdl_event *events;	/* sorted by stream_id, then id */
	size_t n_env, n_clocks, n_streams, n_events;
};

struct ky_tsdl_error {
	unsigned line, column;
	char text[160];
};

#define KY_TSDL_MAX_DEPTH 1200 /* of types in types */

/*
 * Prepares the n labels and ranges of t, which is complete otherwise, to be looked up. Returns
 * false without memory.
 */
bool ky_type_index_labels(struct ky_tsdl *tsdl, struct ky_type *t);
/* The blocks are complete: sorts streams and events, and refuses identifiers that are there twice
 * and events of streams that are not. Returns false with a reason in error. */
bool ky_tsdl_finish(struct ky_tsdl *t, struct ky_tsdl_error *error);
void ky_tsdl_deinit(struct ky_tsdl *t);
/* NULL when there is none. */
const struct ky_env *ky_tsdl_env(const struct ky_tsdl *t, const char *name);

#endif
