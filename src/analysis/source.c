/* SPDX-License-Identifier: MIT */
#include "analysis/source.h"

#include "analysis/ahead.h"
#include "analysis/functions.h"
#include "analysis/source-class.h"
#include "reader/reader.h"

struct ky_source {
	struct ky_texts *names;
	const struct ky_query *query;	/* borrowed */
	struct ky_trace_reader *reader; /* borrowed */
	enum ky_source_part part;	/* the part that is read */
	uint32_t span;			/* the span that was asked for last */
	bool is_function;		/* the span is none of the metadata's */
	struct ky_functions functions;
	struct ky_field_ref *refs;		      /* owned; of the filter */
	struct ky_cursor *cursor;		      /* owned; NULL: not started */
	const struct ky_trace_reader_options *report; /* of the next reading; NULL: none */
	struct ky_ahead *ahead; /* owned; NULL: nothing was read since the start */
	bool reads_ahead;
	uint8_t *wanted;		 /* owned; by class */
	struct ky_source_class *classes; /* owned; by ky_event_class.index */
	size_t n_classes;
	size_t n_cut; /* streams whose missing begin was returned */
	/* Whose host was looked up last. */
	const struct ky_trace *trace;
	uint32_t host;
};

/* --- pairs --- */

/* The parts of "A..B,key=FIELD". False: the text is none. */
struct pair_text {
	char begin[KY_TEXTS_LENGTH], end[KY_TEXTS_LENGTH], key[KY_TEXTS_LENGTH];
};

static bool parse_pair(struct pair_text *p, const char *text)
{
	const char *dots = strstr(text, ".."), *comma = dots ? strchr(dots, ',') : NULL;
	size_t n = dots ? (size_t)(dots - text) : 0;
	size_t m = dots ? strcspn(dots + 2, ",") : 0;

	*p = (struct pair_text){0};
	if (!n || !m || n >= sizeof(p->begin) || m >= sizeof(p->end))
		return false;
	memcpy(p->begin, text, n);
	memcpy(p->end, dots + 2, m);
	if (!comma)
		return strcmp(p->begin, p->end) != 0;
	if (strncmp(comma, ",key=", 5) != 0 || !comma[5] || strlen(comma + 5) >= sizeof(p->key))
		return false;
	memcpy(p->key, comma + 5, strlen(comma + 5));
	return strcmp(p->begin, p->end) != 0;
}

static const struct ky_field *find_named(
	const struct ky_source *s, const struct ky_source_class *c, const char *name)
{
	for (size_t i = 0; i < c->fields.n; i++) {
		if (!strcmp(ky_texts_get(s->names, c->fields.v[i].name), name))
			return &c->fields.v[i];
	}
	return NULL;
}

/* 1 if the class was one of its ends, 0 if not, -EINVAL if it does not have the key. */
static int set_end(struct ky_source *s, struct ky_source_class *c, const struct pair_text *p,
	bool is_begin, uint32_t base)
{
	const char *name = is_begin ? p->begin : p->end;
	const struct ky_field *key = *p->key ? find_named(s, c, p->key) : NULL;

	if (!c->event || strcmp(c->event->name, name) != 0)
		return 0;
	if (*p->key && !key)
		return -EINVAL;
	c->base = base;
	c->known[KY_FIELD_SPAN] = key;
	c->is_lock = c->is_alloc = c->is_interrupt = c->is_prctl = false;
	c->kind = key ? (is_begin ? KY_EVENT_ASYNC_BEGIN : KY_EVENT_ASYNC_END)
		      : (is_begin ? KY_EVENT_SPAN_BEGIN : KY_EVENT_SPAN_END);
	return 1;
}

int ky_source_add_pair(struct ky_source *s, const char *text, char *why, size_t why_size)
{
	struct pair_text p;
	char base[2 * KY_TEXTS_LENGTH + 3];
	uint32_t name;

	if (!parse_pair(&p, text)) {
		snprintf(why, why_size,
			"bad pair '%s': write BEGIN..END or BEGIN..END,key=FIELD, with the names of two different events",
			text);
		return -EINVAL;
	}
	snprintf(base, sizeof(base), "%s..%s", p.begin, p.end);
	name = ky_texts_add(s->names, base, strlen(base));
	for (int is_begin = 1; is_begin >= 0; is_begin--) {
		const char *event = is_begin ? p.begin : p.end;
		bool found = false;

		for (size_t i = 0; i < s->n_classes; i++) {
			int r = set_end(s, &s->classes[i], &p, is_begin, name);

			if (r < 0) {
				snprintf(why, why_size, "%s has no field '%s'", event, p.key);
				return r;
			}
			found = found || r;
		}
		if (!found) {
			snprintf(why, why_size, "there is no event '%s' in this trace", event);
			return -EINVAL;
		}
	}
	return s->names->error;
}

/* --- events --- */

struct ky_source *ky_source_free(struct ky_source *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < s->n_classes; i++)
		ky_vec_deinit(&s->classes[i].fields);
	ky_functions_deinit(&s->functions);
	ky_ahead_free(s->ahead);
	ky_cursor_close(s->cursor);
	free(s->refs);
	free(s->classes);
	free(s->wanted);
	free(s);
	return NULL;
}

static int open_classes(struct ky_source *s)
{
	s->classes = calloc(s->reader->n_classes + 1, sizeof(*s->classes));
	s->wanted = calloc(s->reader->n_classes + 1, 1);
	if (!s->classes || !s->wanted)
		return -ENOMEM;
	s->n_classes = s->reader->n_classes;
	for (size_t i = 0; i < s->n_classes; i++)
		ky_source_class_init(&s->classes[i], s->reader->classes[i], s->names);
	return s->names->error;
}

int ky_source_new(
	struct ky_source **ret_source, const struct ky_query *query, struct ky_texts *names)
{
	struct ky_source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->names = names;
	s->query = query;
	s->reader = query->reader;
	if (query->expr)
		s->refs = calloc(ky_expr_n_fields(query->expr) + 1, sizeof(*s->refs));
	r = query->expr && !s->refs ? -ENOMEM : open_classes(s);
	if (r < 0)
		ky_source_free(s);
	else
		*ret_source = s;
	return r;
}

static bool is_span(const struct ky_source_class *c)
{
	return c->kind >= KY_EVENT_SPAN_BEGIN && c->kind <= KY_EVENT_ASYNC_END;
}

/* Whether functions are spans, and none of the metadata's spans has this name. */
static bool may_be_function(const struct ky_source *s, uint32_t span)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		if (is_span(&s->classes[i]) && s->classes[i].base == span)
			return false;
	}
	return s->functions.finder;
}

/* Whether the class may have events of the span that is asked for. */
static bool is_of_span(const struct ky_source *s, const struct ky_source_class *c)
{
	return s->is_function ? ky_functions_is_call(c) : is_span(c) && c->base == s->span;
}

static bool is_in(
	const struct ky_source *s, const struct ky_source_class *c, enum ky_source_part part)
{
	switch (part) {
	case KY_SOURCE_SPAN:
		return is_of_span(s, c);
	case KY_SOURCE_ASYNC:
		return is_span(c) && c->kind >= KY_EVENT_ASYNC_BEGIN;
	case KY_SOURCE_CALLS:
		return ky_functions_is_call(c);
	case KY_SOURCE_ALL:
		break;
	}
	return true;
}

/* Accounts begin earlier: who holds a mutex is known from the time before. */
#define LEAD_NS 1000000000

int ky_source_start(struct ky_source *s, enum ky_source_part part, uint32_t span)
{
	const struct ky_trace_reader_options none = {0}, *options = s->report ? s->report : &none;
	struct ky_select select = s->query->select;
	int r = 0;

	s->ahead = ky_ahead_free(s->ahead);
	s->cursor = ky_cursor_close(s->cursor);
	s->n_cut = 0;
	s->report = NULL;
	s->part = part;
	if (part == KY_SOURCE_SPAN) {
		s->span = span;
		s->is_function = may_be_function(s, span);
	}
	for (size_t i = 0; i < s->n_classes; i++) {
		const struct ky_source_class *c = &s->classes[i];
		bool wanted = is_in(s, c, part) && (is_of_span(s, c) || ky_query_has(s->query, i));

		s->wanted[i] = wanted ? KY_WANT_EVENT | KY_WANT_VALUES : 0;
	}
	if (part != KY_SOURCE_SPAN && select.from_ns > INT64_MIN + LEAD_NS)
		select.from_ns -= LEAD_NS;
	select.wanted = s->wanted;
	if (select.from_ns != INT64_MIN || select.to_ns != INT64_MAX)
		r = ky_trace_reader_index(s->reader);
	return r ? r : ky_cursor_open(&s->cursor, s->reader, &select, options);
}

void ky_source_name_functions(struct ky_source *s, const struct ky_function_names *names)
{
	s->functions.finder = names;
}

void ky_source_report(struct ky_source *s, const struct ky_trace_reader_options *options)
{
	s->report = options;
}

void ky_source_read_ahead(struct ky_source *s)
{
	s->reads_ahead = true;
}

bool ky_source_passes(struct ky_source *s, const struct ky_source_event *e)
{
	const struct ky_expr *expr = s->query->expr;

	if (!expr)
		return true;
	if (!ky_expr_bind(expr, e->item->event, s->refs))
		return false;
	/* The item has no decoder, only values. */
	for (size_t i = 0; i < ky_expr_n_fields(expr); i++)
		s->refs[i].place = KY_FIELD_ANYWHERE;
	return ky_expr_pass(expr, s->refs, e->item);
}

static uint32_t host_of(struct ky_source *s, const struct ky_trace *trace)
{
	if (s->trace != trace) {
		const struct ky_env *host = ky_tsdl_env(&trace->tsdl, "hostname");

		s->trace = trace;
		s->host = host && host->text
				  ? ky_texts_add(s->names, host->text, strlen(host->text))
				  : 0;
	}
	return s->host;
}

static void set_event(struct ky_source *s, struct ky_source_event *e)
{
	e->class = &s->classes[e->item->event->index];
	e->group = (uint32_t)e->item->trace->group;
	e->host = host_of(s, e->item->trace);
	e->class = ky_functions_class(&s->functions, s->names, e);
	e->kind = e->class->kind;
}

static struct ky_source_event loss(const struct ky_stream *stream, int64_t from, int64_t to)
{
	return (struct ky_source_event){.kind = KY_EVENT_LOST,
		.ns = to,
		.begin_ns = from,
		.stream = stream->rank,
		.group = (uint32_t)stream->files[0].trace->group,
		.is_of_thread = ky_stream_is_of_thread(stream)};
}

/* Streams of a snapshot reach back differently: what is missing before counts as lost. */
static bool next_cut(struct ky_source *s, struct ky_source_event *ret_event)
{
	while (s->n_cut < s->reader->n_streams) {
		const struct ky_stream *stream = s->reader->streams[s->n_cut++];
		int64_t ns;

		if (!ky_stream_is_cut(stream, &ns))
			continue;
		*ret_event = loss(stream, INT64_MIN, ns);
		return true;
	}
	return false;
}

/* One class has the events of all functions: it is read for one of them, or for all. */
static bool is_asked_for(const struct ky_source *s, const struct ky_source_event *e)
{
	if (!e->class->is_function || e->class->base == s->span)
		return true;
	return s->part != KY_SOURCE_SPAN && ky_query_has(s->query, e->item->event->index);
}

int ky_source_next(struct ky_source *s, struct ky_source_event *ret_event)
{
	const struct ky_item *item;
	int r;

	if (next_cut(s, ret_event))
		return 1;
	if (!s->ahead)
		s->ahead = ky_ahead_new(s->cursor, s->reads_ahead);
	if (!s->ahead)
		return -ENOMEM;
	while ((r = ky_ahead_next(s->ahead, &item)) > 0) {
		if (item->kind != KY_ITEM_EVENT) {
			*ret_event = loss(item->stream, item->lost.begin_ns, item->lost.end_ns);
			ret_event->item = item;
			return 1;
		}
		if (!item->has_time)
			continue;
		*ret_event = (struct ky_source_event){
			.ns = item->ns, .stream = item->stream->rank, .item = item};
		set_event(s, ret_event);
		if (is_asked_for(s, ret_event))
			return 1;
	}
	return r;
}

struct ky_fact ky_source_fact(
	struct ky_source *s, const struct ky_source_event *e, const struct ky_field *f)
{
	return ky_source_event_fact(s->names, e, f);
}

uint32_t ky_source_text(
	struct ky_source *s, const struct ky_source_event *e, enum ky_event_field field)
{
	struct ky_fact fact = ky_source_fact(s, e, e->class->known[field]);

	return fact.type == KY_FACT_TEXT ? fact.text : 0;
}

/* --- what there is --- */

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **ky_source_spans(const struct ky_source *s)
{
	const char **names = calloc(s->n_classes + s->functions.table.n + 1, sizeof(*names));
	size_t n = 0, k = 0;

	for (size_t i = 0; names && i < s->n_classes; i++) {
		const struct ky_source_class *c = &s->classes[i];

		if (c->kind == KY_EVENT_SPAN_BEGIN || c->kind == KY_EVENT_ASYNC_BEGIN ||
			c->kind == KY_EVENT_SPAN_END || c->kind == KY_EVENT_ASYNC_END)
			names[n++] = ky_texts_get(s->names, c->base);
	}
	if (names)
		n = ky_functions_list(&s->functions, s->names, names, n);
	if (n)
		qsort(names, n, sizeof(*names), compare_texts);
	for (size_t i = 0; i < n; i++) {
		if (!k || strcmp(names[k - 1], names[i]))
			names[k++] = names[i];
	}
	if (names)
		names[k] = NULL;
	return names;
}

void ky_source_put_fields(const struct ky_source *s, const char *span, struct ky_buf *b)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		const struct ky_source_class *c = &s->classes[i];
		bool is_begin = c->kind == KY_EVENT_SPAN_BEGIN || c->kind == KY_EVENT_ASYNC_BEGIN;

		if (!is_begin || strcmp(ky_texts_get(s->names, c->base), span) != 0)
			continue;
		for (size_t k = 0; k < c->fields.n; k++) {
			const struct ky_field *f = &c->fields.v[k];

			if (f->scope == KY_SCOPE_FIELDS && f != c->known[KY_FIELD_SPAN])
				ky_buf_printf(b, "%s%s", b->len ? ", " : "",
					ky_texts_get(s->names, f->name));
		}
		return;
	}
}

bool ky_source_has_provider(const struct ky_source *s, const char *provider)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		const char *name = s->classes[i].event ? s->classes[i].event->name : NULL;

		if (name && ky_source_is_of_provider(name, provider))
			return true;
	}
	return false;
}

bool ky_source_has_kind(const struct ky_source *s, enum ky_event_kind kind)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		if (s->classes[i].event && s->classes[i].kind == kind)
			return true;
	}
	return false;
}

bool ky_source_is_of_function(const struct ky_source *s)
{
	return s->is_function;
}

bool ky_source_has_calls(const struct ky_source *s)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		if (s->classes[i].event && ky_functions_is_call(&s->classes[i]))
			return true;
	}
	return false;
}

void ky_source_totals(const struct ky_source *s, struct ky_totals *ret_totals)
{
	ky_cursor_totals(s->cursor, ret_totals);
}

int64_t ky_source_begin_ns(const struct ky_source *s)
{
	struct ky_reader_sums sums = {0};

	return ky_trace_reader_sums(s->reader, &sums) < 0 ? 0 : sums.begin_ns;
}
