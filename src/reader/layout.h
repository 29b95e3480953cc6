/* SPDX-License-Identifier: MIT */
/*
 * What the decoder works with: the types of a trace's metadata, compiled for the places where they
 * stand. Byte order, the clock, the field that a length or a tag comes from, and what is shown
 * to people are settled here, once, so that decoding a record looks nothing up.
 *
 * A value that a later field depends on is kept in a numbered slot. Slots of outer scopes stay
 * valid for the inner ones: packet header, packet context, event header, contexts, fields.
 *
 * What most records consist of needs no look at each field: members of whole bytes that follow
 * each other (runs), records of a known size, and heads that are one word (struct ky_short_head).
 */
#ifndef READER_LAYOUT_H
#define READER_LAYOUT_H

#include "reader/tsdl.h"

enum ky_node_kind {
	KY_NODE_INT,
	KY_NODE_FLOAT,
	KY_NODE_STRING,
	KY_NODE_ARRAY,
	KY_NODE_SEQUENCE,
	KY_NODE_STRUCT,
	KY_NODE_VARIANT,
};

/* What the reader itself wants of a field; by its name and scope. */
enum ky_role {
	KY_ROLE_NONE,
	KY_ROLE_MAGIC,
	KY_ROLE_UUID, /* an array of bytes: the value is its offset in bits */
	KY_ROLE_STREAM_ID,
	KY_ROLE_INSTANCE_ID,
	KY_ROLE_TIMESTAMP_BEGIN,
	KY_ROLE_TIMESTAMP_END,
	KY_ROLE_CONTENT_SIZE,
	KY_ROLE_PACKET_SIZE,
	KY_ROLE_PACKET_SEQ,
	KY_ROLE_DISCARDED,
	KY_ROLE_EVENT_ID,
	KY_ROLE_CPU, /* this and the following are shown, too */
	KY_ROLE_SPAN_TID,
	KY_ROLE_ASYNC_ID,
	KY_N_ROLES,
};

/* Which option the values of a tag choose. Shared by variants that are alike. */
struct ky_choices {
	struct ky_segments segments; /* of ranges; at most one for a value */
	const uint32_t *options;     /* of each range */
};

#define KY_NO_SLOT   UINT32_MAX
#define KY_NO_OPTION UINT64_MAX /* value of an optional field that is not there */
#define KY_LEAD_PAD  16		/* leads may be copied in pieces of this size */

struct ky_node {
	uint8_t kind; /* enum ky_node_kind */
	uint8_t role; /* enum ky_role */
	uint8_t size; /* INT, FLOAT: bits */
	uint8_t base;
	bool is_signed;
	bool big_endian;
	bool is_clock;	/* INT: its value moves the clock */
	bool is_mapped; /* INT: it shows a clock, perhaps without moving it */
	bool is_shown;	/* readers print it: not a time, a size or an identifier */
	bool is_enum;
	bool is_asked;	    /* INT: some field depends on it */
	bool is_text;	    /* ARRAY, SEQUENCE: of characters */
	bool is_leb;	    /* INT: of as many bytes as it needs */
	bool is_optional;   /* VARIANT: with one option, or none */
	bool is_blob;	    /* ARRAY, SEQUENCE: of bytes without a meaning of their own */
	uint8_t show;	    /* INT: enum ky_show */
	uint8_t encoding;   /* STRING, ARRAY, SEQUENCE: enum ky_encoding */
	bool is_scalars;    /* ARRAY, SEQUENCE: of plain numbers at equal distances */
	uint32_t align;	    /* bits, a power of two */
	uint32_t n;	    /* children: members, options; 1 of arrays */
	uint32_t slot;	    /* INT: where the value is kept; KY_NO_SLOT: nowhere */
	uint32_t from;	    /* SEQUENCE: slot of the length; VARIANT: of the tag */
	uint32_t n_run;	    /* STRUCT's member: so many from here on are one run; 0: not in one */
	uint64_t flat_bits; /* of a member of a run; 0: not fit for one */
	uint64_t run_bits;  /* of all the run, which begins at a whole byte */
	uint64_t count;	    /* ARRAY */
	const char *name;   /* as shown: without one leading underscore; "" when it has none */
	const char *full_name;
	const char
		*lead; /* STRUCT's member that is shown: ", name = ", with a copy's room behind */
	uint32_t lead_len;
	struct ky_node *children;
	const struct ky_type *type;	  /* labels of an enumeration */
	const struct ky_choices *choices; /* VARIANT */
	struct ky_node *depends_on;	  /* SEQUENCE, VARIANT: an INT */
};

/* Bytes of the smallest part of a character. */
static inline size_t ky_encoding_unit(uint8_t encoding)
{
	return encoding == KY_UTF_8 ? 1 : encoding <= KY_UTF_16BE ? 2 : 4;
}

#define KY_NO_BITS UINT64_MAX

struct ky_event_class {
	uint64_t id;
	const char *name; /* or NULL */
	size_t name_len;
	int loglevel; /* -1: none */
	const struct ky_stream_class *stream;
	struct ky_node *context, *fields; /* or NULL */
	uint64_t body_bits;		  /* behind a head of whole bytes; KY_NO_BITS: it depends */
	bool is_span;			  /* its fields have KY_ROLE_SPAN_TID or KY_ROLE_ASYNC_ID */
	size_t index;			  /* among all of the reader's */
};

/*
 * The usual head of a record: a little-endian word of an identifier, if it is one of lo .. hi, and
 * the low part of the clock above it. Other identifiers say that a longer head is there.
 */
struct ky_short_head {
	unsigned bits;	/* of the word: 8, 16, 32, 64; 0: there is no such head */
	uint32_t align; /* bits, 8 or more */
	uint64_t lo, hi;
	const struct ky_node *id, *time;
};

struct ky_stream_class {
	uint64_t id;
	struct ky_node *packet_context, *event_header, *event_context; /* or NULL */
	struct ky_short_head short_head;
	const struct ky_clock *clock;  /* of its timestamps, or NULL */
	unsigned discarded_bits;       /* width of events_discarded; 0: not there */
	unsigned seq_bits;	       /* width of packet_seq_num; 0: not there */
	unsigned begin_bits, end_bits; /* width of timestamp_begin, _end; 0: not there */
	struct ky_event_class *events; /* sorted by id */
	size_t n_events;
};

struct ky_layout {
	struct ky_node *packet_header;	 /* or NULL */
	struct ky_stream_class *streams; /* sorted by id */
	size_t n_streams;
	uint32_t n_slots; /* the decoder needs this many */
};

/*
 * Compiles t, whose arena also holds the result and must outlive it. Returns 0, or -EINVAL with a
 * line in why.
 */
int ky_layout_compile(struct ky_layout *l, struct ky_tsdl *t, char *why, size_t why_size);
/* NULL when there is none. */
struct ky_stream_class *ky_layout_stream(const struct ky_layout *l, uint64_t id);
struct ky_event_class *ky_stream_class_event_slow(const struct ky_stream_class *s, uint64_t id);

/* The same of events. Identifiers are mostly 0, 1, 2, ...: the first look finds those. */
static inline struct ky_event_class *ky_stream_class_event(
	const struct ky_stream_class *s, uint64_t id)
{
	return id < s->n_events && s->events[id].id == id ? &s->events[id]
							  : ky_stream_class_event_slow(s, id);
}

#endif
