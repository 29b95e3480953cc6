/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace as `kymo explain` and `kymo report` want them: classes with a kind and
 * known fields, and one event at a time, in order of time.
 *
 * A source can be read several times.
 */
#ifndef ANALYSIS_SOURCE_H
#define ANALYSIS_SOURCE_H

#include "base/buf.h"
#include "analysis/texts.h"
#include "reader/query.h"

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

/* Finds the names of functions by the addresses at which they are entered. */
struct ky_function_names {
	/* Returns false if none is known. pid: -1 if it is not known. */
	bool (*find)(void *arg, const char *host, int64_t pid, uint64_t address, char *text,
		size_t size);
	void *arg;
};

struct ky_source;

/* Parts of a trace that are read. */
enum ky_source_part {
	KY_SOURCE_SPAN,	 /* begins and ends of one span */
	KY_SOURCE_ASYNC, /* of all asynchronous spans */
	KY_SOURCE_CALLS, /* entries and exits of functions */
	KY_SOURCE_ALL,
};

/*
 * query: what of opened traces is looked at: its times; its classes, but for the span's own; its
 * filter, by which instances are chosen. Query and names must live as long as the source. 0 or
 * -ENOMEM.
 */
int ky_source_new(
	struct ky_source **ret_source, const struct ky_query *query, struct ky_texts *names);
struct ky_source *ky_source_free(struct ky_source *s);
/*
 * Makes a span of two events: "A..B" in one thread, or "A..B,key=FIELD" wherever they have the same
 * value of that field. Its name is "A..B". 0, -ENOMEM, or -EINVAL with a line in why: for a bad
 * text, or an event or field that the trace does not have.
 */
int ky_source_add_pair(struct ky_source *s, const char *text, char *why, size_t why_size);
/* Makes spans of functions, where their entries and exits were recorded. names: borrowed. */
void ky_source_name_functions(struct ky_source *s, const struct ky_function_names *names);
/* Lets another thread decode ahead of the caller's, which reads to the end (analysis/ahead.h). */
void ky_source_read_ahead(struct ky_source *s);
/* Lets the next reading report damage of the trace. options: borrowed until it has ended. */
void ky_source_report(struct ky_source *s, const struct ky_trace_reader_options *options);
/* Begins, or begins again. span: the name, for KY_SOURCE_SPAN. 0 or a negative errno. */
int ky_source_start(struct ky_source *s, enum ky_source_part part, uint32_t span);
/* 1 with the next event, whose values live until the next call; 0 at the end; negative errno. */
int ky_source_next(struct ky_source *s, struct ky_source_event *ret_event);
/* True if the query's filter lets the event pass. */
bool ky_source_passes(struct ky_source *s, const struct ky_source_event *e);
/* The number of a known field; `otherwise` if the class does not have it. */
int64_t ky_source_number(
	const struct ky_source_event *e, enum ky_event_field field, int64_t otherwise);
/* The number that a begin and an end of an asynchronous span have in common. */
uint64_t ky_source_id(const struct ky_source_event *e);
/* The bits of a number, or a number that stands for a text; 0 for other fields. */
uint64_t ky_source_bits(const struct ky_source_event *e, const struct ky_field *f);
/* The number of a field, or the length of its text; NAN for others and for names of numbers. */
double ky_source_real(const struct ky_source_event *e, const struct ky_field *f);
/* The name of a known field's text; 0 if the class does not have it. */
uint32_t ky_source_text(
	struct ky_source *s, const struct ky_source_event *e, enum ky_event_field field);
/* Whether the field has a number, whose fact needs no name. */
bool ky_source_has_number(const struct ky_source_event *e, const struct ky_field *f);
struct ky_fact ky_source_fact(
	struct ky_source *s, const struct ky_source_event *e, const struct ky_field *f);
/* The addresses of a CPU sample, the innermost first; 0 behind the last. */
void ky_source_stack(const struct ky_source_event *e, uint64_t *ret_stack, size_t n);
/*
 * Spans that the metadata names, and functions that were read, sorted, then NULL. The caller frees
 * the array alone.
 */
const char **ky_source_spans(const struct ky_source *s);
/* Appends the names of the fields of a span's begin: "tenant, size". */
void ky_source_put_fields(const struct ky_source *s, const char *span, struct ky_buf *b);
/* Whether some event class is of a provider: "pthread", "libc"; or of this kind. */
bool ky_source_has_provider(const struct ky_source *s, const char *provider);
bool ky_source_has_kind(const struct ky_source *s, enum ky_event_kind kind);
/* Whether entries of functions were recorded. */
bool ky_source_has_calls(const struct ky_source *s);
/* Of what was read since the last start; complete at the end. */
void ky_source_totals(const struct ky_source *s, struct ky_totals *ret_totals);
/* Whether events of this name come from the preloads, or from the tracer itself. */
bool ky_source_is_library(const char *name);
/* The begin of the trace; 0 if no event has a time. */
int64_t ky_source_begin_ns(const struct ky_source *s);

#endif
