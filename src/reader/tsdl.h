/* SPDX-License-Identifier: MIT */
/*
 * Parser of TSDL, the text that describes a CTF 1.8 trace: text in, a tree of types and the blocks
 * trace, env, clock, stream and event out. Pure. The text is hostile input: depth and memory are
 * bounded, time is linear but for look-ups of names.
 *
 * Types are as written: what depends on where a type stands (byte order of the trace, lengths of
 * sequences, tags of variants) is resolved by the layout compiler (reader/layout.h).
 */
#ifndef READER_TSDL_H
#define READER_TSDL_H

#include "reader/arena.h"

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

/* Values lo .. hi, both included; compared as the enumeration's integer is signed. */
struct ky_label {
	const char *label;
	uint64_t lo, hi;
};

struct ky_member {
	const char *name;
	const struct ky_type *type;
};

struct ky_type {
	uint8_t kind;	    /* enum ky_type_kind */
	uint8_t size;	    /* INT, ENUM: 1 .. 64; FLOAT: 32, 64 bits */
	uint8_t base;	    /* INT, ENUM: 2, 8, 10, 16 */
	uint8_t byte_order; /* enum ky_byte_order */
	bool is_signed;
	bool is_text;	   /* INT: a character */
	uint32_t align;	   /* bits, a power of two; STRUCT: what was asked for at least */
	uint32_t n;	   /* labels or members */
	const char *clock; /* INT: name of the clock it shows, or NULL */
	const struct ky_label *labels;	 /* ENUM */
	const struct ky_member *members; /* STRUCT, VARIANT */
	const struct ky_type *elem;	 /* ARRAY, SEQUENCE */
	uint64_t count;			 /* ARRAY */
	const char *path; /* SEQUENCE: its length; VARIANT: its tag, or NULL: "a.b.c" */
};

struct ky_env {
	const char *name;
	const char *text; /* NULL: a number */
	int64_t number;
};

struct ky_clock {
	const char *name;
	const char *description;
	const char *uuid; /* text, or NULL */
	uint64_t freq;	  /* Hz, not 0 */
	int64_t offset_s; /* seconds and cycles from the origin to value 0 */
	uint64_t offset;
	int64_t base_ns; /* both, see ky_clock_ns */
};

struct ky_tsdl_stream {
	uint64_t id;
	const struct ky_type *event_header, *event_context, *packet_context; /* or NULL */
};

struct ky_tsdl_event {
	const char *name; /* or NULL */
	uint64_t id, stream_id;
	int loglevel; /* -1: none */
	const struct ky_type *context, *fields;
};

struct ky_tsdl {
	struct ky_arena arena; /* all strings, types and arrays below */
	bool is_cut;	       /* the text ended within a block, which was left out */
	bool big_endian;
	bool has_uuid;
	uint8_t uuid[16];
	const struct ky_type *packet_header; /* or NULL */
	struct ky_env *env;
	struct ky_clock *clocks;
	struct ky_tsdl_stream *streams; /* sorted by id */
	struct ky_tsdl_event *events;	/* sorted by stream_id, then id */
	size_t n_env, n_clocks, n_streams, n_events;
};

struct ky_tsdl_error {
	unsigned line, column;
	char text[160];
};

#define KY_TSDL_MAX_DEPTH  32		       /* of types in types */
#define KY_TSDL_MAX_MEMORY ((size_t)256 << 20) /* of one trace's types and layouts */

/*
 * Parses len bytes of text. A text that ends within a block, behind the first stream's, is that of
 * a machine that died while it was written: what is whole is taken. Returns 0, or -EINVAL with
 * *error filled in. ky_tsdl_deinit in any case.
 */
int ky_tsdl_parse(struct ky_tsdl *t, const char *text, size_t len, struct ky_tsdl_error *error);
void ky_tsdl_deinit(struct ky_tsdl *t);
/* NULL when there is none. */
const struct ky_env *ky_tsdl_env(const struct ky_tsdl *t, const char *name);
const struct ky_clock *ky_tsdl_clock(const struct ky_tsdl *t, const char *name);
/*
 * Nanoseconds from the origin of the clock's value; saturates. Rounded as babeltrace2 does, which
 * goes through a double, so that both show the same time; exact if the clock counts nanoseconds.
 */
int64_t ky_clock_ns(const struct ky_clock *c, uint64_t value);
/* 16 bytes from "2a6422d0-6cee-11e0-8c08-cb07d7b3a564". */
bool ky_uuid_parse(uint8_t uuid[16], const char *text);

#endif
