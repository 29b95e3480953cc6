/* SPDX-License-Identifier: MIT */
/* One event of a source (analysis/source.h): its class, and the values of its fields. */
#ifndef ANALYSIS_SOURCE_EVENT_H
#define ANALYSIS_SOURCE_EVENT_H

#include "analysis/texts.h"
#include "reader/field.h"

enum ky_event_kind {
	KY_EVENT_PLAIN,
	KY_EVENT_SPAN_BEGIN,
	KY_EVENT_SPAN_END,
	KY_EVENT_ASYNC_BEGIN,
	KY_EVENT_ASYNC_END,
	KY_EVENT_PAIR_ENTRY, /* a system call, an interrupt, a function */
	KY_EVENT_PAIR_EXIT,
	KY_EVENT_ALLOC,
	KY_EVENT_LOCK_REQ,
	KY_EVENT_LOCK_ACQ,
	KY_EVENT_TRYLOCK,
	KY_EVENT_UNLOCK,
	KY_EVENT_SWITCH,
	KY_EVENT_WAKING,
	KY_EVENT_BLOCK_BEGIN, /* a request is given to a block device */
	KY_EVENT_BLOCK_DONE,  /* a block device completed a request */
	KY_EVENT_RAISE,	      /* a soft interrupt will be served */
	KY_EVENT_SAMPLE,      /* a CPU sample: a thread was found running */
	KY_EVENT_LOST, /* not an event: a stream has not all events between begin_ns and ns */
};

/* Fields that the account needs, by what they mean. */
enum ky_event_field {
	KY_FIELD_TID,
	KY_FIELD_PID,
	KY_FIELD_PROCNAME,
	KY_FIELD_CPU,
	KY_FIELD_SPAN, /* span_tid or async_id */
	KY_FIELD_MUTEX,
	KY_FIELD_STATUS,
	KY_FIELD_CALLER,
	KY_FIELD_PREV_TID,
	KY_FIELD_PREV_STATE,
	KY_FIELD_NEXT_TID,
	KY_FIELD_NEXT_COMM,
	KY_FIELD_WOKEN_TID,
	KY_FIELD_IN_INTERRUPT,
	KY_FIELD_VEC,
	KY_FIELD_ADDRESS, /* of the function */
	KY_FIELD_DEVICE,
	KY_FIELD_COUNTER,
	KY_FIELD_SIZE,
	KY_FIELD_NMEMB,	 /* of calloc, whose size is that of one element */
	KY_FIELD_OPTION, /* of prctl() */
	KY_N_FIELDS,
};

struct ky_field {
	uint32_t name;
	uint8_t scope; /* enum ky_scope */
	uint32_t i;    /* among the scope's values */
};

/* An event class of the trace. */
struct ky_source_class {
	const struct ky_event_class *event;
	enum ky_event_kind kind;
	uint32_t name; /* of the event; all functions that allocate or free have one */
	uint32_t base; /* spans and pairs: the name of the span */
	bool is_kernel, is_lock, is_alloc;
	bool is_library;   /* of the preloads, or of the tracer itself */
	bool is_own;	   /* of the application: neither a span's nor a library's */
	bool is_function;  /* the span is a function */
	bool is_interrupt; /* a pair that comes to a thread, whatever it does: page faults, too */
	bool is_prctl;
	const struct ky_field *known[KY_N_FIELDS]; /* NULL: it has none */
	KY_VEC(struct ky_field) fields;		   /* all that have one number or text each */
	struct ky_field_ref callers;		   /* SAMPLE */
};

struct ky_source_event {
	enum ky_event_kind kind;
	int64_t ns;
	const struct ky_source_class *class; /* NULL: LOST */
	uint32_t host;			     /* a name: threads of two hosts may have one number */
	uint32_t stream;		     /* its rank */
	uint32_t group;			     /* the same for all streams of a trace */
	int64_t begin_ns;		     /* LOST */
	bool is_of_thread;	    /* LOST: the stream has events of one thread at a time */
	const struct ky_item *item; /* LOST: NULL if the stream begins late */
};

enum ky_fact_type {
	KY_FACT_NONE,
	KY_FACT_INT, /* an unsigned number of 64 bits too: those above INT64_MAX are a REAL */
	KY_FACT_REAL,
	KY_FACT_TEXT,
};

/* A value of a field. */
struct ky_fact {
	enum ky_fact_type type;
	bool is_hex; /* shown in base 16 */
	union {
		int64_t number;
		double real;
		struct {
			uint32_t text;	 /* a name, of the first KY_TEXTS_LENGTH bytes */
			uint32_t length; /* of all of a text that is a field */
		};
	};
};

/* The number of a known field; `otherwise` if the class does not have it. */
int64_t ky_source_number(
	const struct ky_source_event *e, enum ky_event_field field, int64_t otherwise);
/* The number that a begin and an end of an asynchronous span have in common. */
uint64_t ky_source_id(const struct ky_source_event *e);
/* The bits of a number, or a number that stands for a text; 0 for other fields. */
uint64_t ky_source_bits(const struct ky_source_event *e, const struct ky_field *f);
/* The number of a field, or the length of its text; NAN for others and for names of numbers. */
double ky_source_real(const struct ky_source_event *e, const struct ky_field *f);
/* Whether the field has a number, whose fact needs no name. */
bool ky_source_has_number(const struct ky_source_event *e, const struct ky_field *f);
/* Returns what the field says. f may be NULL, of no field. Texts and labels go to `names`. */
struct ky_fact ky_source_event_fact(
	struct ky_texts *names, const struct ky_source_event *e, const struct ky_field *f);
/* The addresses of a CPU sample, the innermost first; 0 behind the last. */
void ky_source_stack(const struct ky_source_event *e, uint64_t *ret_stack, size_t n);

#endif
