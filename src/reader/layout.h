/* SPDX-License-Identifier: MIT */
/*
 * A layout: the types of a trace's metadata, compiled for the places where they are used. The
 * compiler resolves byte orders, clocks, the fields that give lengths and tags, and the choice of
 * fields that are shown. The decoder then looks nothing up.
 *
 * The decoder stores a value that a later field depends on in a numbered slot. Slots of outer
 * scopes stay valid for the inner ones. The order of scopes is: packet header, packet context,
 * event header, common context, specific context, fields.
 *
 * Four shortcuts serve most records: members of whole bytes that follow each other (runs), bodies
 * of a known size, heads that are one word (struct ky_short_head), and scopes whose fields are
 * printed from their bytes (struct ky_step).
 */
#ifndef READER_LAYOUT_H
#define READER_LAYOUT_H

#include "reader/types.h"

enum ky_node_kind {
	KY_NODE_INT,
	KY_NODE_FLOAT,
	KY_NODE_STRING,
	KY_NODE_ARRAY,
	KY_NODE_SEQUENCE,
	KY_NODE_STRUCT,
	KY_NODE_VARIANT,
};

/* The purpose of a field that the reader uses itself: by its name and scope, or as CTF 2 says. */
enum ky_role {
	KY_ROLE_NONE,
	KY_ROLE_MAGIC,
	KY_ROLE_UUID, /* an array of 16 bytes: its value is its offset in bits */
	KY_ROLE_STREAM_ID,
	KY_ROLE_INSTANCE_ID,
	KY_ROLE_TIMESTAMP_BEGIN,
	KY_ROLE_TIMESTAMP_END,
	KY_ROLE_CONTENT_SIZE,
	KY_ROLE_PACKET_SIZE,
	KY_ROLE_PACKET_SEQ,
	KY_ROLE_DISCARDED,
	KY_ROLE_EVENT_ID,
	KY_ROLE_CPU, /* this role and the following ones do not hide their fields */
	KY_ROLE_SPAN_TID,
	KY_ROLE_ASYNC_ID,
	KY_N_ROLES,
};

/* The option that each value of a tag selects. Variants of the same types share it. */
struct ky_choices {
	struct ky_segments segments; /* at most one range for each value */
	const uint32_t *options;     /* the option of each range */
};

#define KY_NO_SLOT   UINT32_MAX
#define KY_NO_OPTION UINT64_MAX /* value of an optional field that is absent */
#define KY_LEAD_PAD  16		/* readers may copy leads in pieces of this size */

enum ky_step_kind {
	KY_STEP_HIDDEN,
	KY_STEP_U8, /* in decimal, the lowest byte first */
	KY_STEP_U16,
	KY_STEP_U32,
	KY_STEP_U64,
	KY_STEP_I8,
	KY_STEP_I16,
	KY_STEP_I32,
	KY_STEP_I64,
	KY_STEP_INT, /* another number */
	KY_STEP_FLOAT,
	KY_STEP_TEXT,	/* of `bytes` bytes, or up to its NUL */
	KY_STEP_STRING, /* up to its NUL */
};

/* A member of a scope that is printed from the scope's bytes; the next one follows. */
struct ky_step {
	uint8_t kind; /* enum ky_step_kind */
	uint8_t lead_len, json_lead_len;
	uint32_t bytes; /* 0: STRING */
	const char *lead, *json_lead;
	const struct ky_node *node;
};

struct ky_node {
	uint8_t kind;	     /* enum ky_node_kind */
	uint8_t role;	     /* enum ky_role */
	uint8_t second_role; /* the same; of few fields of CTF 2 */
	uint8_t size;	     /* INT, FLOAT: bits */
	uint8_t base;
	bool is_signed;
	bool big_endian;
	bool is_clock;	/* INT: its value moves the clock */
	bool is_mapped; /* INT: it has a clock, even if its value does not move it */
	bool is_shown;	/* readers print it; false for times, sizes, identifiers */
	bool is_enum;
	bool is_number;	  /* INT: shown as a number alone */
	bool is_asked;	  /* INT: another field depends on it */
	bool is_text;	  /* ARRAY, SEQUENCE: of characters */
	bool is_leb;	  /* INT: has as many bytes as its value needs */
	bool is_optional; /* VARIANT: has one option, which may be absent */
	bool is_blob;	  /* ARRAY, SEQUENCE: of opaque bytes */
	uint8_t show;	  /* INT: enum ky_show */
	uint8_t encoding; /* STRING, ARRAY, SEQUENCE: enum ky_encoding */
	bool is_scalars;  /* ARRAY, SEQUENCE: of plain numbers at equal distances */
	bool keeps_name;  /* paths and JSON have full_name: another member has the shown one */
	uint32_t align;	  /* bits, a power of two */
	uint32_t n;	  /* children: members, options; 1 of arrays */
	uint32_t slot;	  /* INT: the slot that stores the value, or KY_NO_SLOT */
	uint32_t from;	  /* SEQUENCE: slot of its length; VARIANT: of its tag */
	/* Member of a STRUCT: number of members from here to the end of its run, or 0. */
	uint32_t n_run;
	uint64_t flat_bits; /* size of a member of a run; 0: it cannot be in one */
	uint64_t run_bits;  /* size of the members from here to the end of the run */
	uint64_t count;	    /* ARRAY */
	const char *name;   /* as shown: CTF 1.8 hides one leading underscore; "" if it has none */
	const char *full_name;
	const char *lead; /* shown member of a STRUCT: ", name = ", padded to KY_LEAD_PAD */
	uint32_t lead_len;
	const char *json_lead; /* the same in JSON: `, "name": `, padded likewise */
	uint32_t json_lead_len;
	struct ky_node *children;
	/* A scope that is printed from its bytes: its members. NULL: it has others, or none. */
	const struct ky_step *steps;
	uint32_t n_steps;
	uint32_t shown_begin, shown_end;  /* STRUCT: members outside are not shown */
	uint64_t step_bytes;		  /* of all steps; 0: it varies */
	const struct ky_type *type;	  /* labels of an enumeration */
	const struct ky_named *named;	  /* KY_SHOW_NAMED */
	const struct ky_choices *choices; /* VARIANT */
	struct ky_node *depends_on;	  /* SEQUENCE, VARIANT: an INT */
	/*
	 * Options of a variant may have the same names, or none: then several values have one path.
	 * The first of them, or NULL if it is this one; the next of them after the first.
	 */
	const struct ky_node *first, *twin;
};

/* The name of a member in paths and in JSON. */
static inline const char *ky_node_path_name(const struct ky_node *n)
{
	return n->keeps_name ? n->full_name : n->name;
}

static inline bool ky_node_is_list(const struct ky_node *n)
{
	return n->kind == KY_NODE_ARRAY || n->kind == KY_NODE_SEQUENCE;
}

/* Returns whether a packet's context shows nothing but the number of the processor. */
bool ky_node_is_only_cpu(const struct ky_node *packet);

/* Returns the size in bytes of the smallest part of a character. */
static inline size_t ky_encoding_unit(uint8_t encoding)
{
	return encoding == KY_UTF_8 ? 1 : encoding <= KY_UTF_16BE ? 2 : 4;
}

#define KY_NO_BITS UINT64_MAX

struct ky_named; /* reader/values.h */

struct ky_event_class {
	uint64_t id;
	const char *name; /* "<unknown>" if the metadata has none, as babeltrace2 shows it */
	size_t name_len;
	int loglevel; /* -1: none */
	const struct ky_stream_class *stream;
	struct ky_node *context, *fields; /* or NULL */
	uint64_t body_bits; /* size behind a head of whole bytes; KY_NO_BITS: it varies */
	bool is_span;	    /* its fields have KY_ROLE_SPAN_TID or KY_ROLE_ASYNC_ID */
	size_t index;	    /* number among all classes of the reader */
};

/*
 * The usual head of a record: one little-endian word. Its low bits are an identifier in lo .. hi,
 * its high bits the low part of the clock. Any other identifier announces a longer head.
 */
struct ky_short_head {
	unsigned bits;	/* size of the word: 8, 16, 32, 64; 0: records have no such head */
	uint32_t align; /* bits, 8 or more */
	uint64_t lo, hi;
	const struct ky_node *id, *time;
};

struct ky_stream_class {
	uint64_t id;
	struct ky_node *packet_context, *event_header, *event_context; /* or NULL */
	struct ky_short_head short_head;
	const struct ky_trace_clock *clock; /* clock of its timestamps, or NULL */
	uint64_t default_id;		    /* of events whose header has no id */
	unsigned discarded_bits;	    /* width of events_discarded; 0: absent */
	unsigned seq_bits;		    /* width of packet_seq_num; 0: absent */
	unsigned begin_bits, end_bits;	    /* width of timestamp_begin, _end; 0: absent */
	struct ky_event_class *events;	    /* sorted by id */
	size_t n_events;
};

struct ky_layout {
	struct ky_node *packet_header;	 /* or NULL */
	struct ky_stream_class *streams; /* sorted by id */
	size_t n_streams;
	uint32_t n_slots; /* size of the decoder's array of slots */
};

/*
 * Compiles t. The result lives in the arena of t. Returns 0, or -EINVAL with a one-line reason in
 * why.
 */
int ky_layout_compile(struct ky_layout *l, struct ky_tsdl *t, char *why, size_t why_size);
/* Chooses how integers are shown that show as numbers otherwise; elements by their array's name. */
void ky_layout_choose_show(struct ky_layout *l,
	enum ky_show (*show)(const void *arg, const char *name, unsigned base), const void *arg);
/* Finds the scopes that can be printed from their bytes. Last, because it depends on choices. */
void ky_layout_find_steps(struct ky_layout *l, struct ky_arena *arena);
/* Returns the stream class with this identifier, or NULL. */
struct ky_stream_class *ky_layout_stream(const struct ky_layout *l, uint64_t id);
struct ky_event_class *ky_stream_class_event_slow(const struct ky_stream_class *s, uint64_t id);

/* Returns the event class with this identifier, or NULL. Fast if identifiers are 0, 1, 2, ... */
static inline struct ky_event_class *ky_stream_class_event(
	const struct ky_stream_class *s, uint64_t id)
{
	return id < s->n_events && s->events[id].id == id ? &s->events[id]
							  : ky_stream_class_event_slow(s, id);
}

/* Returns the time of a value of the class's clock, in nanoseconds; 0 if it has none. */
static inline int64_t ky_stream_class_ns(const struct ky_stream_class *s, uint64_t clock)
{
	return s->clock ? ky_trace_clock_ns(s->clock, clock) : 0;
}

#endif
