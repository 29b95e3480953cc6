/* SPDX-License-Identifier: MIT */
/*
 * Rows of tables. Tables of events and `lost` read batches of a cursor, spans those of
 * kymo_spans_next, packets one packet after another; streams and classes are lists of the reader.
 *
 * Tables of events may share a cursor. Fields of one name and type share a column of its query,
 * whatever tables they are in.
 */
#include "tables/tables.h"

#include <inttypes.h>

#include "base/buf.h"

#define MAX_SOURCES 4

/* How much tables may have that share a cursor: a cursor fills each column for each row. */
#define MAX_SHARED_TABLES  64u
#define MAX_SHARED_COLUMNS 128u

/* The columns of the query that a column of the table shows: the first that has a value. */
struct sources {
	size_t column[MAX_SOURCES];
	size_t n;
};

/* A column of the query. */
struct query_column {
	const char *name; /* borrowed */
	enum kymo_column_type type;
	bool is_exact;
};

struct ky_scan {
	const struct ky_tables *tables; /* borrowed */
	size_t first, n_tables;		/* the tables whose rows these are */
	const struct ky_table *table;	/* borrowed: that of the row */
	struct ky_scan_limits limits;
	struct kymo_query *query;   /* owned */
	struct kymo_cursor *cursor; /* owned, of tables of events and lost */
	struct kymo_spans *spans;   /* owned */
	const struct kymo_batch *batch;
	const struct kymo_span_batch *span_batch;
	struct query_column *query_columns; /* owned */
	size_t n_query_columns;
	struct sources **sources_of; /* owned: by table, then by its column */
	struct sources *sources;     /* those of the row's table */
	size_t cpu_column;	     /* of the query, if the limits have a processor */
	size_t row, n_rows;	     /* in the batch, or of a list */
	struct kymo_packets *packets;
	struct kymo_packet packet;
	size_t stream; /* of packets */
	struct ky_buf text;
	uint64_t text_left;
};

/* --- opening --- */

static bool is_wanted(const struct ky_scan *s, size_t column)
{
	return !s->limits.columns || s->limits.columns[column];
}

static int find_query_column(
	struct ky_scan *s, const char *name, enum kymo_column_type type, bool is_exact, size_t *ret)
{
	const struct query_column wanted = {name, type, is_exact};
	struct query_column *c = s->query_columns;
	int r;

	for (*ret = 0; *ret < s->n_query_columns; ++*ret)
		if (c[*ret].type == type && c[*ret].is_exact == is_exact &&
			!strcmp(c[*ret].name, name))
			return 0;
	c = reallocarray(c, s->n_query_columns + 1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	s->query_columns = c;
	r = kymo_query_column(s->query, name, type, ret);
	if (!r && is_exact)
		r = kymo_query_exact(s->query, *ret);
	if (!r)
		c[s->n_query_columns++] = wanted;
	return r;
}

static int add_source(struct ky_scan *s, size_t column, const char *name,
	enum kymo_column_type type, bool is_exact)
{
	struct sources *to = &s->sources[column];

	return find_query_column(s, name, type, is_exact, &to->column[to->n++]);
}

/* Adds the fields that a fixed column of an event may have its value from. */
static int add_fixed_sources(struct ky_scan *s, size_t column, int fixed)
{
	static const char *const names[KY_EVENT_N_FIXED][MAX_SOURCES + 1] = {
		[KY_EVENT_CPU] = {"$ctx.cpu_id"},
		[KY_EVENT_PID] = {"$ctx.vpid", "$ctx.pid"},
		[KY_EVENT_TID] = {"$ctx.vtid", "$ctx.tid", "span_tid"},
		[KY_EVENT_PROCNAME] = {"$ctx.procname"}};
	bool is_text = fixed == KY_EVENT_PROCNAME;
	int r = 0;

	for (size_t i = 0; names[fixed][i] && !r; i++)
		r = add_source(s, column, names[fixed][i], is_text ? KYMO_TEXT : KYMO_INT64, false);
	return r;
}

/* Adds a source for each of these types, 1 << enum kymo_column_type: no value is converted. */
static int add_exact_sources(struct ky_scan *s, size_t column, const char *field, unsigned types)
{
	int r = 0;

	for (int type = KYMO_INT64; type <= KYMO_TEXT && !r; type++)
		if (types & 1u << type)
			r = add_source(s, column, field, (enum kymo_column_type)type, true);
	return r;
}

/* The text of an enumeration is its label; the numbers say that it is one. */
static int add_label_sources(struct ky_scan *s, size_t column, const char *field)
{
	int r = add_source(s, column, field, KYMO_TEXT, false);

	return r ? r : add_exact_sources(s, column, field, 1u << KYMO_INT64 | 1u << KYMO_UINT64);
}

static int add_sources(struct ky_scan *s, size_t column)
{
	const struct ky_table_column *c = &s->table->columns[column];

	if (!is_wanted(s, column))
		return 0;
	if (c->field && c->is_label)
		return add_label_sources(s, column, c->field);
	if (c->field)
		return add_exact_sources(s, column, c->field, c->types);
	if (c->fixed == KY_EVENT_FIELDS)
		return kymo_query_lines(s->query, 1);
	return add_fixed_sources(s, column, c->fixed);
}

/* Returns whether events of the class are rows of the scan. */
static bool has_class(const struct ky_scan *s, size_t i)
{
	const struct ky_tables *t = s->tables;
	bool is_in_table = t->table_of[i] >= s->first && t->table_of[i] - s->first < s->n_tables;

	return t->selected[i] && (!s->limits.classes || s->limits.classes[i]) &&
	       (s->table->kind != KY_TABLE_CLASS || is_in_table);
}

/* Selects the tables' classes. *ret_any: whether there is one. */
static int select_classes(struct ky_scan *s, bool *ret_any)
{
	int r = 0;

	*ret_any = false;
	for (size_t i = 0; i < kymo_reader_n_classes(s->tables->reader) && !r; i++) {
		if (!has_class(s, i))
			continue;
		*ret_any = true;
		r = kymo_query_class(s->query, i);
	}
	return r;
}

static int set_limits(struct ky_scan *s)
{
	const struct ky_scan_limits *l = &s->limits;
	const struct ky_tables_part *part = &s->tables->part;
	int r = kymo_query_time(
		s->query, KY_MAX(l->from_ns, part->from_ns), KY_MIN(l->to_ns, part->to_ns));

	if (!r && part->filter)
		r = kymo_query_filter(s->query, part->filter, NULL);
	if (!r && l->has_stream && l->stream >= 0)
		r = kymo_query_stream(s->query, (size_t)l->stream);
	return r;
}

static bool is_impossible(const struct ky_scan *s)
{
	const struct ky_scan_limits *l = &s->limits;

	return l->has_stream &&
	       (l->stream < 0 || (uint64_t)l->stream >= kymo_reader_n_streams(s->tables->reader));
}

static void enter_table(struct ky_scan *s, size_t table)
{
	s->table = &s->tables->tables[table];
	s->sources = s->sources_of[table - s->first];
}

/* Adds the next table to the scan, with the columns that it needs of the query. */
static int add_table(struct ky_scan *s)
{
	size_t table = s->first + s->n_tables;
	int r = 0;

	s->sources_of[s->n_tables] = calloc(
		s->tables->tables[table].n_columns + 1, sizeof(*s->sources));
	if (!s->sources_of[s->n_tables++])
		return -ENOMEM;
	enter_table(s, table);
	for (size_t i = 0; i < s->table->n_columns && !r; i++)
		r = add_sources(s, i);
	return r;
}

/* A scan of events. Without a class there is no row, and no cursor. */
static int open_events(struct ky_scan *s, size_t n_max)
{
	const struct ky_tables *t = s->tables;
	bool any = false;
	int r;

	do
		r = add_table(s);
	while (!r && s->n_tables < n_max && s->first + s->n_tables < t->n &&
		t->tables[s->first + s->n_tables].kind == KY_TABLE_CLASS &&
		s->n_query_columns < MAX_SHARED_COLUMNS);
	if (!r)
		r = select_classes(s, &any);
	if (r || !any)
		return r;
	if (s->limits.has_cpu)
		r = find_query_column(s, "$ctx.cpu_id", KYMO_INT64, false, &s->cpu_column);
	return r ? r : kymo_cursor_open(&s->cursor, s->query);
}

/* Losses of a query without events: no class is left by a pattern that excludes all. */
static int open_lost(struct ky_scan *s)
{
	int r = kymo_query_events(s->query, "!*");

	if (!r)
		r = kymo_query_losses(s->query, 1);
	return r ? r : kymo_cursor_open(&s->cursor, s->query);
}

static int open_spans(struct ky_scan *s)
{
	bool any = false;
	int r = select_classes(s, &any);

	return r || !any ? r : kymo_spans_open(&s->spans, s->query, NULL, NULL);
}

/* Opens at most so many tables. */
static int open_tables(struct ky_scan *s, size_t n_max)
{
	switch (s->table->kind) {
	case KY_TABLE_CLASS:
	case KY_TABLE_EVENTS:
		return open_events(s, n_max);
	case KY_TABLE_SPANS:
		return open_spans(s);
	case KY_TABLE_LOST:
		return open_lost(s);
	case KY_TABLE_STREAMS:
		s->n_rows = kymo_reader_n_streams(s->tables->reader);
		return 0;
	case KY_TABLE_CLASSES:
		s->n_rows = kymo_reader_n_classes(s->tables->reader);
		return 0;
	default:
		return 0;
	}
}

/* Opens a scan of at most so many tables. */
static int open_scan(struct ky_scan **ret_scan, const struct ky_tables *t, size_t first,
	size_t n_max, const struct ky_scan_limits *limits)
{
	struct ky_scan *s = calloc(1, sizeof(*s));
	int r = s ? kymo_query_new(&s->query, t->reader) : -ENOMEM;

	if (!s)
		return r;
	s->tables = t;
	s->first = first;
	s->table = &t->tables[first];
	s->text_left = KY_SCAN_TEXT_MIN +
		       (uint64_t)KY_MIN(t->n_bytes * KY_SCAN_TEXT_PER_BYTE, 0x1p62);
	s->limits = *limits;
	s->sources_of = calloc(n_max, sizeof(*s->sources_of));
	s->row = SIZE_MAX; /* before the first one */
	if (!s->sources_of)
		r = -ENOMEM;
	if (!r && !is_impossible(s))
		r = set_limits(s);
	if (!r && !is_impossible(s))
		r = open_tables(s, n_max);
	/* They borrow from the caller, and were used. */
	s->limits.columns = NULL;
	s->limits.classes = NULL;
	if (r) {
		ky_scan_close(s);
		return r;
	}
	*ret_scan = s;
	return 0;
}

int ky_scan_open(struct ky_scan **ret_scan, const struct ky_tables *t, const struct ky_table *table,
	const struct ky_scan_limits *limits)
{
	return open_scan(ret_scan, t, (size_t)(table - t->tables), 1, limits);
}

int ky_scan_open_some(
	struct ky_scan **ret_scan, const struct ky_tables *t, size_t first, size_t *ret_n)
{
	const struct ky_scan_limits all = KY_SCAN_ALL;
	bool is_class = t->tables[first].kind == KY_TABLE_CLASS;
	int r = open_scan(ret_scan, t, first, is_class ? MAX_SHARED_TABLES : 1, &all);

	if (!r)
		*ret_n = KY_MAX((*ret_scan)->n_tables, (size_t)1);
	return r;
}

void ky_scan_close(struct ky_scan *s)
{
	if (!s)
		return;
	kymo_packets_close(s->packets);
	kymo_spans_close(s->spans);
	kymo_cursor_close(s->cursor);
	kymo_query_free(s->query);
	ky_buf_deinit(&s->text);
	for (size_t i = 0; s->sources_of && i < s->n_tables; i++)
		free(s->sources_of[i]);
	free(s->sources_of);
	free(s->query_columns);
	free(s);
}

/* --- rows --- */

static bool get_integer(const struct ky_scan *s, size_t column, int64_t *ret)
{
	if (!kymo_batch_has(s->batch, column, s->row))
		return false;
	*ret = ((const int64_t *)s->batch->columns[column].values)[s->row];
	return true;
}

/* Returns false for rows that the limits leave out. */
static bool is_in_limits(const struct ky_scan *s)
{
	int64_t cpu;

	if (!s->limits.has_cpu || s->table->kind == KY_TABLE_LOST)
		return true;
	return get_integer(s, s->cpu_column, &cpu) && cpu == s->limits.cpu;
}

/* The next row of a cursor's batches. */
static int next_of_batch(struct ky_scan *s)
{
	int r;

	if (!s->cursor)
		return 0;
	do {
		if (!s->batch || ++s->row >= s->batch->n) {
			s->row = 0;
			r = kymo_cursor_next(s->cursor, &s->batch);
			if (r <= 0)
				return r;
		}
	} while (!is_in_limits(s));
	if (s->n_tables > 1)
		enter_table(s, s->tables->table_of[s->batch->class_index[s->row]]);
	return 1;
}

static int next_of_spans(struct ky_scan *s)
{
	if (!s->spans)
		return 0;
	if (s->span_batch && ++s->row < s->span_batch->n)
		return 1;
	s->row = 0;
	return kymo_spans_next(s->spans, &s->span_batch);
}

static int next_packet(struct ky_scan *s)
{
	int r = 0;

	for (; s->stream < kymo_reader_n_streams(s->tables->reader); s->stream++) {
		if (!s->packets)
			r = kymo_packets_open(&s->packets, s->tables->reader, s->stream);
		if (r < 0)
			return r;
		r = kymo_packets_next(s->packets, &s->packet);
		if (r)
			return r;
		kymo_packets_close(s->packets);
		s->packets = NULL;
	}
	return 0;
}

int ky_scan_next(struct ky_scan *s)
{
	if (!s->text_left)
		return -EFBIG;
	switch (s->table->kind) {
	case KY_TABLE_CLASS:
	case KY_TABLE_EVENTS:
	case KY_TABLE_LOST:
		return next_of_batch(s);
	case KY_TABLE_SPANS:
		return next_of_spans(s);
	case KY_TABLE_PACKETS:
		return next_packet(s);
	default:
		return ++s->row < s->n_rows;
	}
}

size_t ky_scan_table(const struct ky_scan *s)
{
	return (size_t)(s->table - s->tables->tables);
}

static const char *event_name(const struct ky_scan *s)
{
	return kymo_reader_class(s->tables->reader, s->batch->class_index[s->row])->name;
}

/* --- cells --- */

static void set_integer(struct ky_cell *ret, int64_t i)
{
	ret->type = KY_CELL_INT;
	ret->i = i;
}

static void set_text(struct ky_cell *ret, const char *text, size_t len)
{
	ret->type = KY_CELL_TEXT;
	ret->text = text;
	ret->len = len;
}

static void set_string(struct ky_cell *ret, const char *text)
{
	set_text(ret, text, strlen(text));
}

/* A number that SQL's integers do not hold becomes text. */
static void set_unsigned(struct ky_cell *ret, uint64_t u)
{
	if (u <= INT64_MAX) {
		set_integer(ret, (int64_t)u);
		return;
	}
	set_text(ret, ret->number,
		(size_t)snprintf(ret->number, sizeof(ret->number), "%" PRIu64, u));
}

/* Below 0 if the end is before the begin, as a clock that goes back makes it. */
static void set_duration(struct ky_cell *ret, int64_t from_ns, int64_t to_ns)
{
	uint64_t ns = (uint64_t)to_ns - (uint64_t)from_ns;

	if (to_ns < from_ns)
		set_integer(ret, (int64_t)ns);
	else
		set_unsigned(ret, ns);
}

/* The value of one column of the query. */
static void set_value(const struct ky_scan *s, struct ky_cell *ret, size_t column)
{
	const struct kymo_column *c = &s->batch->columns[column];
	const char *text;
	size_t len;

	switch (c->type) {
	case KYMO_INT64:
		set_integer(ret, ((const int64_t *)c->values)[s->row]);
		return;
	case KYMO_UINT64:
		set_unsigned(ret, ((const uint64_t *)c->values)[s->row]);
		return;
	case KYMO_DOUBLE:
		ret->type = KY_CELL_REAL;
		ret->d = ((const double *)c->values)[s->row];
		return;
	default:
		text = kymo_batch_text(s->batch, column, s->row, &len);
		set_text(ret, text, len);
		return;
	}
}

/* Returns whether the text is a number: an enumeration without a label for its value shows that. */
static bool is_number(const struct ky_cell *cell)
{
	size_t i = cell->len && cell->text[0] == '-';

	while (i < cell->len && cell->text[i] >= '0' && cell->text[i] <= '9')
		i++;
	return i == cell->len;
}

/* The sources are the text, and the numbers of both signs: other fields have no label. */
static void set_label(const struct ky_scan *s, const struct sources *from, struct ky_cell *ret)
{
	for (size_t i = 1; i < from->n; i++) {
		if (!kymo_batch_has(s->batch, from->column[i], s->row))
			continue;
		set_value(s, ret, from->column[0]);
		if (is_number(ret))
			ret->type = KY_CELL_NULL;
	}
}

/* True if the current event or loss has a time: its stream has a clock. */
static bool has_time(const struct ky_scan *s)
{
	return kymo_reader_stream(s->tables->reader, s->batch->stream[s->row])->has_times;
}

static void set_event_cell(struct ky_scan *s, size_t column, struct ky_cell *ret)
{
	const struct ky_table_column *c = &s->table->columns[column];
	const struct sources *from = &s->sources[column];
	const char *text;
	size_t len;

	for (size_t i = 0; i < from->n && !c->is_label; i++) {
		if (!kymo_batch_has(s->batch, from->column[i], s->row))
			continue;
		set_value(s, ret, from->column[i]);
		return;
	}
	if (c->is_label)
		set_label(s, from, ret);
	if (c->field)
		return;
	if (c->fixed == KY_EVENT_TS && has_time(s))
		set_integer(ret, s->batch->ns[s->row]);
	else if (c->fixed == KY_EVENT_NAME)
		set_string(ret, event_name(s));
	else if (c->fixed == KY_EVENT_STREAM)
		set_integer(ret, s->batch->stream[s->row]);
	else if (c->fixed != KY_EVENT_FIELDS)
		return;
	else if (!kymo_batch_format(s->batch, s->row, KYMO_FORMAT_JSON_FIELDS, &text, &len))
		set_text(ret, text, len);
	else
		s->text_left = 0; /* this event alone has too much: the scan ends with the error */
}

static void set_known(struct ky_cell *ret, int64_t number)
{
	if (number >= 0)
		set_integer(ret, number);
}

static void set_span_cell(const struct ky_scan *s, int fixed, struct ky_cell *ret)
{
	const struct kymo_span_batch *b = s->span_batch;
	const char *name;
	size_t i = s->row;

	switch (fixed) {
	case 0:
		set_integer(ret, b->begin_ns[i]);
		return;
	case 1:
		set_unsigned(ret, b->duration_ns[i]);
		return;
	case 2:
		set_unsigned(ret, b->self_ns[i]);
		return;
	case 3:
		name = kymo_spans_name(s->spans, b->name[i]);
		set_string(ret, name ? name : "");
		return;
	case 4:
		set_known(ret, b->tid[i]);
		return;
	case 5:
		set_known(ret, b->pid[i]);
		return;
	case 6:
		set_integer(ret, b->depth[i]);
		return;
	case 7:
		if (b->parent[i])
			set_unsigned(ret, b->parent[i]);
		return;
	case 8:
		set_integer(ret, b->flags[i] & KYMO_SPAN_ASYNC);
		return;
	default:
		set_unsigned(ret, b->number[i]);
		return;
	}
}

static void set_lost_cell(const struct ky_scan *s, int fixed, struct ky_cell *ret)
{
	static const char *const what[] = {[KYMO_ITEM_DISCARDED_EVENTS] = "events",
		[KYMO_ITEM_DISCARDED_PACKETS] = "packets",
		[KYMO_ITEM_DAMAGED] = "damaged"};
	const struct kymo_batch *b = s->batch;
	size_t i = s->row;

	switch (fixed) {
	case 0:
		if (has_time(s))
			set_integer(ret, b->ns[i]);
		return;
	case 1:
		if (has_time(s))
			set_duration(ret, b->ns[i], b->end_ns[i]);
		return;
	case 2:
		if (b->item[i] != KYMO_ITEM_DAMAGED)
			set_unsigned(ret, b->lost[i]);
		return;
	case 3:
		set_integer(ret, b->stream[i]);
		return;
	default:
		set_string(ret, what[b->item[i]]);
		return;
	}
}

static void set_packet_cell(const struct ky_scan *s, int fixed, struct ky_cell *ret)
{
	const struct kymo_packet *p = &s->packet;

	switch (fixed) {
	case 0:
		if (p->has_times)
			set_integer(ret, p->begin_ns);
		return;
	case 1:
		if (p->has_times)
			set_duration(ret, p->begin_ns, p->end_ns);
		return;
	case 2:
		set_integer(ret, (int64_t)s->stream);
		return;
	case 3:
		set_unsigned(ret, p->offset);
		return;
	case 4:
		set_unsigned(ret, p->n_bytes);
		return;
	case 5:
		set_unsigned(ret, p->n_discarded);
		return;
	default:
		set_string(ret, p->path);
		return;
	}
}

static void set_stream_cell(const struct ky_scan *s, int fixed, struct ky_cell *ret)
{
	const struct kymo_stream_info *i = kymo_reader_stream(s->tables->reader, s->row);
	const struct kymo_trace_info *t = kymo_reader_trace(s->tables->reader, i->trace);

	switch (fixed) {
	case 0:
		set_integer(ret, (int64_t)s->row);
		return;
	case 1:
		set_string(ret, t->path);
		return;
	case 2:
		set_string(ret, t->host);
		return;
	case 3:
		set_string(ret, i->path);
		return;
	case 4:
		set_unsigned(ret, i->stream_class);
		return;
	case 5:
		set_unsigned(ret, i->instance);
		return;
	case 6:
		set_unsigned(ret, i->n_bytes);
		return;
	default:
		if (i->is_cut)
			set_integer(ret, i->complete_from_ns);
		return;
	}
}

/* The names of a class's fields, as a list. */
static void set_field_names(
	struct ky_scan *s, const struct kymo_event_class *c, struct ky_cell *ret)
{
	s->text.len = 0;
	for (size_t i = 0; i < c->n_fields; i++)
		ky_buf_printf(&s->text, "%s%s%s", s->text.len ? ", " : "",
			c->fields[i].scope == KYMO_SCOPE_FIELDS ? "" : "$ctx.", c->fields[i].name);
	set_text(ret, s->text.data ? s->text.data : "", s->text.len);
}

static void set_class_cell(struct ky_scan *s, int fixed, struct ky_cell *ret)
{
	const struct kymo_event_class *c = kymo_reader_class(s->tables->reader, s->row);

	switch (fixed) {
	case 0:
		set_string(ret, c->name);
		return;
	case 1:
		set_unsigned(ret, c->id);
		return;
	case 2:
		set_string(ret, kymo_reader_trace(s->tables->reader, c->trace)->path);
		return;
	case 3:
		set_unsigned(ret, c->stream_class);
		return;
	case 4:
		set_known(ret, c->log_level);
		return;
	default:
		set_field_names(s, c, ret);
		return;
	}
}

static void set_cell(struct ky_scan *s, size_t column, struct ky_cell *ret)
{
	int fixed = s->table->columns[column].fixed;

	switch (s->table->kind) {
	case KY_TABLE_CLASS:
	case KY_TABLE_EVENTS:
		set_event_cell(s, column, ret);
		return;
	case KY_TABLE_SPANS:
		set_span_cell(s, fixed, ret);
		return;
	case KY_TABLE_LOST:
		set_lost_cell(s, fixed, ret);
		return;
	case KY_TABLE_PACKETS:
		set_packet_cell(s, fixed, ret);
		return;
	case KY_TABLE_STREAMS:
		set_stream_cell(s, fixed, ret);
		return;
	case KY_TABLE_CLASSES:
		set_class_cell(s, fixed, ret);
		return;
	}
}

void ky_scan_cell(struct ky_scan *s, size_t column, struct ky_cell *ret)
{
	ret->type = KY_CELL_NULL;
	set_cell(s, column, ret);
	if (ret->type == KY_CELL_TEXT)
		s->text_left -= KY_MIN(s->text_left, (uint64_t)ret->len);
}
