/* SPDX-License-Identifier: MIT */
/*
 * The events of a trace as `kymo explain` and `kymo report` want them: classes with a kind and
 * known fields, and one event at a time, in order of time.
 *
 * A source can be read several times.
 */
#ifndef ANALYSIS_SOURCE_H
#define ANALYSIS_SOURCE_H

#include "analysis/source-event.h"
#include "base/buf.h"
#include "reader/query.h"

struct ky_function_names;
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
/* Returns what the field says: see ky_source_event_fact(). */
struct ky_fact ky_source_fact(
	struct ky_source *s, const struct ky_source_event *e, const struct ky_field *f);
/* The name of a known field's text; 0 if the class does not have it. */
uint32_t ky_source_text(
	struct ky_source *s, const struct ky_source_event *e, enum ky_event_field field);
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
/* Whether the span that was asked for last is a function, as long as functions are spans. */
bool ky_source_is_of_function(const struct ky_source *s);
/* Whether entries of functions were recorded. */
bool ky_source_has_calls(const struct ky_source *s);
/* Of what was read since the last start; complete at the end. */
void ky_source_totals(const struct ky_source *s, struct ky_totals *ret_totals);
/* The begin of the trace; 0 if no event has a time. */
int64_t ky_source_begin_ns(const struct ky_source *s);

#endif
