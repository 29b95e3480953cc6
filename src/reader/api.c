/* SPDX-License-Identifier: MIT */
/*
 * libkymo-reader (include/kymo/reader.h) over the reader's inside. Opening a reader makes the
 * traces, streams and classes that the caller sees. Batches are filled from a cursor's items.
 */
#include <kymo/reader.h>

#include "reader/api.h"
#include "reader/describe.h"
#include "reader/format.h"
#include "reader/query.h"
#include "reader/reader.h"

#define MAX_TEXT   ((size_t)16 << 20) /* bytes of text of a batch, but for its last row's */
#define MAX_VALUES ((size_t)1 << 16)  /* values of a batch that is formatted, likewise */

struct kymo_reader {
	struct ky_trace_reader *inside; /* owned */
	struct ky_trace_reader_options options;
	struct ky_description *description; /* owned */
};

struct ky_trace_reader *ky_reader_inside(const struct kymo_reader *reader)
{
	return reader->inside;
}

struct column_spec {
	char *name; /* owned */
	enum kymo_column_type type;
	bool is_exact; /* values of other types are left out */
};

struct kymo_query {
	struct kymo_reader *reader; /* borrowed */
	struct ky_query inside;
	struct column_spec *columns; /* owned */
	size_t n_columns;
	bool wants_lines, wants_losses;
};

struct ky_query *ky_query_inside(struct kymo_query *query)
{
	return &query->inside;
}

/* The memory of one column of a batch. */
struct column_data {
	uint64_t values[KYMO_BATCH_MAX]; /* bits of numbers */
	uint64_t valid[KYMO_BATCH_MAX / 64];
	uint32_t ends[KYMO_BATCH_MAX]; /* of text */
	struct ky_buf text;
};

struct kymo_cursor {
	const struct kymo_query *query; /* borrowed */
	struct ky_reading reading;
	struct ky_field_ref **fields; /* owned: of the columns, by class */
	size_t n_classes;	      /* elements of fields */
	struct kymo_batch batch;
	struct kymo_column *columns; /* owned */
	struct column_data *data;    /* owned */
	struct ky_values values;
	struct ky_item item;
	uint8_t kind[KYMO_BATCH_MAX];
	int64_t ns[KYMO_BATCH_MAX], end_ns[KYMO_BATCH_MAX];
	uint32_t class_index[KYMO_BATCH_MAX], stream[KYMO_BATCH_MAX];
	uint64_t lost[KYMO_BATCH_MAX];
	/* if lines are wanted */
	struct ky_item *items; /* owned: of the rows; they use their packets */
	struct ky_format format;
	struct ky_buf line;
	size_t next_line; /* row that goes on behind the line before */
	int error;
};

/* --- readers --- */

static void set_error(struct kymo_reader_error *error, unsigned position, const char *text)
{
	if (!error)
		return;
	error->position = position;
	snprintf(error->text, sizeof(error->text), "%s", text);
}

static struct kymo_reader *new_reader(const struct kymo_reader_options *o)
{
	struct kymo_reader *r = calloc(1, sizeof(*r));

	if (r && o && o->size >= offsetof(struct kymo_reader_options, is_growing)) {
		r->options.warn = o->warn;
		r->options.arg = o->arg;
	}
	if (r && o && o->size >= sizeof(*o))
		r->options.is_growing = o->is_growing;
	return r;
}

/* Completes the opening of a reader. e: the result of opening the inside. */
static int finish_open(struct kymo_reader **ret_reader, struct kymo_reader *r, int e,
	struct kymo_reader_error *error, const char *why)
{
	if (!e)
		e = ky_description_new(&r->description, r->inside);
	if (e) {
		set_error(error, 0, *why ? why : "no memory");
		kymo_reader_close(r);
		return e;
	}
	*ret_reader = r;
	return 0;
}

KYMO_READER_API int kymo_reader_open(struct kymo_reader **ret_reader, const char *const *paths,
	size_t n, const struct kymo_reader_options *options, struct kymo_reader_error *error)
{
	struct kymo_reader *r = new_reader(options);
	char why[512] = "";
	int e;

	if (!r)
		return -ENOMEM;
	e = ky_trace_reader_open(&r->inside, paths, n, &r->options, why, sizeof(why));
	return finish_open(ret_reader, r, e, error, why);
}

KYMO_READER_API int kymo_reader_open_memory(struct kymo_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct kymo_reader_options *options, struct kymo_reader_error *error)
{
	struct kymo_reader *r = new_reader(options);
	char why[512] = "";
	int e;

	if (!r)
		return -ENOMEM;
	e = ky_trace_reader_open_memory(&r->inside, metadata, metadata_size, stream, stream_size,
		&r->options, why, sizeof(why));
	return finish_open(ret_reader, r, e, error, why);
}

KYMO_READER_API int kymo_reader_refresh(struct kymo_reader *reader)
{
	struct ky_description *d = NULL;
	int r = ky_trace_reader_refresh(reader->inside);

	if (r <= 0)
		return r;
	if (ky_description_new(&d, reader->inside) < 0)
		return -ENOMEM;
	ky_description_free(reader->description);
	reader->description = d;
	return 1;
}

KYMO_READER_API int kymo_reader_is_recorded(const struct kymo_reader *reader)
{
	return ky_trace_reader_is_recorded(reader->inside);
}

KYMO_READER_API void kymo_reader_close(struct kymo_reader *reader)
{
	if (!reader)
		return;
	ky_description_free(reader->description);
	ky_trace_reader_close(reader->inside);
	free(reader);
}

KYMO_READER_API size_t kymo_reader_n_traces(const struct kymo_reader *reader)
{
	return reader->description->n_traces;
}

KYMO_READER_API size_t kymo_reader_n_streams(const struct kymo_reader *reader)
{
	return reader->description->n_streams;
}

KYMO_READER_API size_t kymo_reader_n_classes(const struct kymo_reader *reader)
{
	return reader->description->n_classes;
}

KYMO_READER_API const struct kymo_trace_info *kymo_reader_trace(
	const struct kymo_reader *reader, size_t i)
{
	const struct ky_description *d = reader->description;

	return i < d->n_traces ? &d->traces[i] : NULL;
}

KYMO_READER_API const struct kymo_stream_info *kymo_reader_stream(
	const struct kymo_reader *reader, size_t i)
{
	const struct ky_description *d = reader->description;

	return i < d->n_streams ? &d->streams[i] : NULL;
}

KYMO_READER_API const struct kymo_event_class *kymo_reader_class(
	const struct kymo_reader *reader, size_t i)
{
	const struct ky_description *d = reader->description;

	return i < d->n_classes ? &d->classes[i] : NULL;
}

KYMO_READER_API const char *kymo_reader_env(
	const struct kymo_reader *reader, size_t trace, const char *name)
{
	return ky_description_env(reader->description, trace, name);
}

KYMO_READER_API int kymo_reader_get_totals(
	struct kymo_reader *reader, struct kymo_reader_totals *totals)
{
	struct ky_reader_sums sums;
	struct kymo_reader_totals t = {.size = KY_MIN(totals->size, sizeof(t))};
	int r = ky_trace_reader_sums(reader->inside, &sums);

	if (r < 0)
		return r;
	t.n_traces = reader->description->n_traces;
	t.n_streams = reader->description->n_streams;
	t.n_classes = reader->description->n_classes;
	t.n_packets = sums.n_packets;
	t.n_bytes = sums.n_bytes;
	t.n_discarded = sums.n_discarded;
	t.has_times = sums.has_times;
	t.begin_ns = sums.begin_ns;
	t.end_ns = sums.end_ns;
	t.is_cut = ky_trace_reader_complete_from(reader->inside, &t.complete_from_ns);
	memcpy(totals, &t, t.size);
	return 0;
}

/* --- queries --- */

KYMO_READER_API int kymo_query_new(struct kymo_query **ret_query, struct kymo_reader *reader)
{
	struct kymo_query *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->reader = reader;
	ky_query_init(&q->inside, reader->inside);
	*ret_query = q;
	return 0;
}

KYMO_READER_API void kymo_query_free(struct kymo_query *query)
{
	if (!query)
		return;
	for (size_t i = 0; i < query->n_columns; i++)
		free(query->columns[i].name);
	free(query->columns);
	ky_query_deinit(&query->inside);
	free(query);
}

KYMO_READER_API int kymo_query_time(struct kymo_query *query, int64_t from_ns, int64_t to_ns)
{
	query->inside.select.from_ns = from_ns;
	query->inside.select.to_ns = to_ns;
	return 0;
}

KYMO_READER_API int kymo_query_events(struct kymo_query *query, const char *patterns)
{
	return ky_query_events(&query->inside, patterns);
}

KYMO_READER_API int kymo_query_class(struct kymo_query *query, size_t class_index)
{
	struct ky_query *q = &query->inside;

	return class_index < q->reader->n_classes ? ky_query_class(q, class_index) : -EINVAL;
}

KYMO_READER_API int kymo_query_has_class(const struct kymo_query *query, size_t class_index)
{
	return class_index < query->inside.reader->n_classes &&
	       ky_query_has(&query->inside, class_index);
}

KYMO_READER_API int kymo_query_stream(struct kymo_query *query, size_t stream)
{
	if (stream >= query->reader->description->n_streams)
		return -EINVAL;
	return ky_query_stream(&query->inside, stream);
}

KYMO_READER_API int kymo_query_filter(
	struct kymo_query *query, const char *expression, struct kymo_reader_error *error)
{
	struct ky_filter_error e = {0};
	int r = ky_query_filter(&query->inside, expression, &e);

	if (r < 0)
		set_error(error, e.position, e.text);
	return r;
}

/* Types that a column's field has: 1 << enum kymo_column_type. */
#define HAS(type) (1u << (type))

/* One more of these types: integers that only KYMO_UINT64 holds. */
#define HAS_WIDE HAS(KYMO_TEXT + 1)

/* The types of a field: of all values that have its path. */
static unsigned types_of_field(const struct ky_field_ref *f)
{
	unsigned types = 0;

	for (const struct ky_node *n = f->node; n; n = n->twin) {
		const struct ky_node *v = f->has_element ? n->children : n;
		enum kymo_column_type type;

		if (f->has_element && !n->is_scalars)
			continue;
		type = f->has_element && n->is_text ? KYMO_UINT64 : ky_node_type(v);
		types |= HAS(type) | (type == KYMO_UINT64 && v->size == 64 ? HAS_WIDE : 0);
	}
	return types;
}

static enum kymo_column_type type_of_column(const struct ky_query *q, const char *name)
{
	unsigned types = 0;
	struct ky_field_ref f;

	for (size_t i = 0; i < q->reader->n_classes; i++) {
		if (ky_query_has(q, i) && ky_field_find(&f, q->reader->classes[i], name))
			types |= types_of_field(&f);
	}
	if (!types || types & HAS(KYMO_TEXT))
		return KYMO_TEXT;
	if (types & HAS(KYMO_DOUBLE) || (types & HAS(KYMO_INT64) && types & HAS_WIDE))
		return KYMO_DOUBLE;
	return types & HAS(KYMO_INT64) ? KYMO_INT64 : KYMO_UINT64;
}

static struct column_spec *add_column(struct kymo_query *q)
{
	struct column_spec *more = reallocarray(q->columns, q->n_columns + 1, sizeof(*more));

	if (more)
		q->columns = more;
	return more ? &more[q->n_columns] : NULL;
}

KYMO_READER_API int kymo_query_column(
	struct kymo_query *query, const char *name, enum kymo_column_type type, size_t *ret_column)
{
	struct column_spec *c;
	struct ky_field_ref f;
	bool found = *name;

	/* A field in CTF 2 may have no name. */
	for (size_t i = 0; i < query->reader->inside->n_classes && !found; i++)
		found = ky_field_find(&f, query->reader->inside->classes[i], name);
	if (!found || type < KYMO_ANY || type > KYMO_TEXT)
		return -EINVAL;
	c = add_column(query);
	if (!c)
		return -ENOMEM;
	c->name = strdup(name);
	if (!c->name)
		return -ENOMEM;
	c->type = type == KYMO_ANY ? type_of_column(&query->inside, name) : type;
	c->is_exact = false;
	if (ret_column)
		*ret_column = query->n_columns;
	query->n_columns++;
	return 0;
}

KYMO_READER_API enum kymo_column_type kymo_query_column_type(
	const struct kymo_query *query, size_t column)
{
	return column < query->n_columns ? query->columns[column].type : KYMO_ANY;
}

KYMO_READER_API int kymo_query_exact(struct kymo_query *query, size_t column)
{
	if (column >= query->n_columns)
		return -EINVAL;
	query->columns[column].is_exact = true;
	return 0;
}

KYMO_READER_API int kymo_query_lines(struct kymo_query *query, int wanted)
{
	query->wants_lines = wanted;
	return 0;
}

KYMO_READER_API int kymo_query_losses(struct kymo_query *query, int wanted)
{
	query->wants_losses = wanted;
	return 0;
}

static struct kymo_query *copy_query(const struct kymo_query *query)
{
	struct kymo_query *q = calloc(1, sizeof(*q));
	int r = q ? 0 : -ENOMEM;

	if (!q)
		return NULL;
	q->reader = query->reader;
	q->wants_lines = query->wants_lines;
	q->wants_losses = query->wants_losses;
	r = ky_query_copy(&q->inside, &query->inside);
	for (size_t i = 0; i < query->n_columns && !r; i++) {
		r = kymo_query_column(q, query->columns[i].name, query->columns[i].type, NULL);
		if (!r)
			q->columns[i].is_exact = query->columns[i].is_exact;
	}
	if (r < 0) {
		kymo_query_free(q);
		return NULL;
	}
	return q;
}

KYMO_READER_API int kymo_query_split(
	const struct kymo_query *query, size_t n, struct kymo_query **parts, size_t *ret_n)
{
	struct ky_select *slices;
	size_t n_slices, i;

	if (ky_query_slices(&query->inside, n, 0, 0, &slices, &n_slices) < 0)
		return -ENOMEM;
	for (i = 0; i < n_slices; i++) {
		parts[i] = copy_query(query);
		if (!parts[i])
			break;
		slices[i].streams = parts[i]->inside.streams;
		parts[i]->inside.select = slices[i];
	}
	free(slices);
	*ret_n = i;
	if (i == n_slices)
		return 0;
	while (i > 0)
		kymo_query_free(parts[--i]);
	*ret_n = 0;
	return -ENOMEM;
}

/* --- columns --- */

static void unbind_columns(struct kymo_cursor *c)
{
	for (size_t i = 0; i < c->n_classes; i++)
		free(c->fields[i]);
	c->n_classes = 0;
}

/* Finds each column's field in each selected class. want: whether values are decoded. */
static int bind_columns(struct kymo_cursor *c, uint8_t *want)
{
	const struct kymo_query *q = c->query;
	const struct ky_trace_reader *r = q->reader->inside;
	struct ky_field_ref **fields;

	unbind_columns(c);
	fields = reallocarray(c->fields, r->n_classes + 1, sizeof(*fields));
	if (!fields)
		return -ENOMEM;
	memset(fields, 0, (r->n_classes + 1) * sizeof(*fields));
	c->fields = fields;
	c->n_classes = r->n_classes;
	for (size_t i = 0; i < r->n_classes; i++) {
		if (!ky_query_has(&q->inside, i))
			continue;
		want[i] = KY_WANT_EVENT | (q->wants_lines ? KY_WANT_VALUES | KY_WANT_LINE : 0);
		c->fields[i] = calloc(q->n_columns + 1, sizeof(*c->fields[i]));
		if (!c->fields[i])
			return -ENOMEM;
		for (size_t k = 0; k < q->n_columns; k++) {
			struct ky_field_ref *f = &c->fields[i][k];

			if (ky_field_find(f, r->classes[i], q->columns[k].name) &&
				f->place == KY_FIELD_ANYWHERE)
				want[i] = KY_WANT_EVENT | KY_WANT_VALUES;
		}
	}
	return 0;
}

static bool get_number(
	const struct ky_field_value *value, enum kymo_column_type type, uint64_t *ret)
{
	const struct ky_node *n = value->v->node;
	double d;

	if (n->kind == KY_NODE_INT && type != KYMO_DOUBLE) {
		*ret = value->v->u;
		return true;
	}
	if (n->kind == KY_NODE_INT)
		d = n->is_signed ? (double)(int64_t)value->v->u : (double)value->v->u;
	else if (n->kind == KY_NODE_FLOAT)
		d = value->v->f;
	else
		return false;
	if (type == KYMO_INT64 && d >= -0x1p63 && d < 0x1p63)
		*ret = (uint64_t)(int64_t)d;
	else if (type == KYMO_UINT64 && d >= 0 && d < 0x1p64)
		*ret = (uint64_t)d;
	else if (type == KYMO_DOUBLE)
		memcpy(ret, &d, sizeof(d));
	else
		return false;
	return true;
}

static void add_integer(struct ky_buf *to, const struct ky_value *v)
{
	if (v->node->is_signed)
		ky_buf_printf(to, "%lld", (long long)v->u);
	else
		ky_buf_printf(to, "%llu", (unsigned long long)v->u);
}

static void add_string(struct ky_buf *to, const struct ky_value *v)
{
	char *text;
	size_t len;

	if (v->node->encoding == KY_UTF_8) {
		ky_buf_append(to, v->text, v->n);
		return;
	}
	text = ky_text_utf8(v->node, v, &len);
	if (text)
		ky_buf_append(to, text, len);
	else
		to->error = -ENOMEM;
	free(text);
}

static void add_text(struct ky_buf *to, const struct ky_field_value *value)
{
	const struct ky_node *n = value->v->node;
	const char *label = NULL;
	uint32_t at = 0;

	to->max = to->len + KY_TEXT_MAX;
	if (n->kind == KY_NODE_INT && n->is_enum)
		label = ky_enum_label(n, value->v->u, &at);
	if (n->kind == KY_NODE_STRING || n->is_text)
		add_string(to, value->v);
	else if (label)
		ky_buf_append(to, label, strlen(label));
	else if (n->kind == KY_NODE_INT)
		add_integer(to, value->v);
	else
		ky_format_value(to, value->v, value->data);
	to->max = 0;
}

/* The type of the value itself; enumerations count as numbers. */
static enum kymo_column_type type_of_value(const struct ky_node *n)
{
	if (n->kind == KY_NODE_INT)
		return n->is_signed ? KYMO_INT64 : KYMO_UINT64;
	return n->kind == KY_NODE_FLOAT ? KYMO_DOUBLE : KYMO_TEXT;
}

/* Adds a row to the columns. event: its class has fields for them. */
static void add_cells(struct kymo_cursor *c, size_t row, bool event)
{
	struct ky_field_ref *fields = event ? c->fields[c->item.event->index] : NULL;

	for (size_t k = 0; k < c->query->n_columns; k++) {
		const struct column_spec *spec = &c->query->columns[k];
		enum kymo_column_type type = spec->type;
		struct column_data *d = &c->data[k];
		struct ky_field_value value;
		bool has = fields && ky_field_get(&fields[k], &c->item, &value) &&
			   (!spec->is_exact || type_of_value(value.v->node) == type);

		if (has && type == KYMO_TEXT)
			add_text(&d->text, &value);
		else if (has)
			has = get_number(&value, type, &d->values[row]);
		if (!has)
			d->values[row] = 0;
		d->valid[row / 64] |= (uint64_t)has << row % 64;
		d->ends[row] = (uint32_t)d->text.len;
		c->error = d->text.error ? d->text.error : c->error;
	}
}

/* --- rows --- */

KYMO_READER_API int kymo_cursor_open(
	struct kymo_cursor **ret_cursor, const struct kymo_query *query)
{
	struct kymo_cursor *c = calloc(1, sizeof(*c));
	size_t n_classes = query->reader->inside->n_classes;
	uint8_t *want = calloc(n_classes + 1, 1);
	int r = -ENOMEM;

	if (c) {
		c->query = query;
		c->columns = calloc(query->n_columns + 1, sizeof(*c->columns));
		c->data = calloc(query->n_columns + 1, sizeof(*c->data));
		if (query->wants_lines)
			c->items = calloc(KYMO_BATCH_MAX, sizeof(*c->items));
	}
	if (c && want && c->columns && c->data && !c->items == !query->wants_lines)
		r = bind_columns(c, want);
	if (!r)
		r = ky_reading_init(
			&c->reading, &query->inside, want, NULL, &query->reader->options);
	free(want);
	if (r) {
		kymo_cursor_close(c);
		return r;
	}
	*ret_cursor = c;
	return 0;
}

/* Releases the rows. */
static void empty_batch(struct kymo_cursor *c)
{
	for (size_t i = 0; c->items && i < c->batch.n; i++)
		ky_cursor_unref(c->reading.cursor, c->items[i].packet);
	for (size_t k = 0; k < c->query->n_columns && c->data; k++) {
		memset(c->data[k].valid, 0, sizeof(c->data[k].valid));
		c->data[k].text.len = 0;
	}
	c->values.n = 0;
	c->batch.n = 0;
	c->next_line = 0;
}

KYMO_READER_API void kymo_cursor_close(struct kymo_cursor *cursor)
{
	if (!cursor)
		return;
	empty_batch(cursor);
	unbind_columns(cursor);
	for (size_t k = 0; cursor->data && k < cursor->query->n_columns; k++)
		ky_buf_deinit(&cursor->data[k].text);
	ky_reading_deinit(&cursor->reading);
	ky_buf_deinit(&cursor->line);
	free(cursor->values.v);
	free(cursor->items);
	free(cursor->fields);
	free(cursor->columns);
	free(cursor->data);
	free(cursor);
}

static uint8_t kind_of(const struct ky_item *item)
{
	switch (item->kind) {
	case KY_ITEM_LOST_EVENTS:
		return KYMO_ITEM_DISCARDED_EVENTS;
	case KY_ITEM_LOST_PACKETS:
		return KYMO_ITEM_DISCARDED_PACKETS;
	case KY_ITEM_DAMAGED:
		return KYMO_ITEM_DAMAGED;
	default:
		return KYMO_ITEM_EVENT;
	}
}

static void add_row(struct kymo_cursor *c)
{
	const struct ky_item *item = &c->item;
	size_t row = c->batch.n++;
	bool event = item->kind == KY_ITEM_EVENT;

	c->kind[row] = kind_of(item);
	c->ns[row] = item->ns;
	c->end_ns[row] = event ? item->ns : item->lost.end_ns;
	c->lost[row] = event || item->kind == KY_ITEM_DAMAGED ? 0 : item->lost.n;
	c->class_index[row] = event ? (uint32_t)item->event->index : UINT32_MAX;
	c->stream[row] = item->stream->rank - 1;
	add_cells(c, row, event);
	if (!c->items)
		return;
	c->items[row] = *item;
	ky_packet_ref(item->packet);
}

static bool is_full(const struct kymo_cursor *c)
{
	size_t n = 0;

	for (size_t k = 0; k < c->query->n_columns; k++)
		n += c->data[k].text.len;
	return c->batch.n == KYMO_BATCH_MAX || n > MAX_TEXT || c->values.n > MAX_VALUES;
}

/* Reads rows until the batch is full. Returns 1, 0 at the end, or -ENOMEM. */
static int fill_batch(struct kymo_cursor *c)
{
	int r = 1;

	while (r > 0 && !is_full(c) && !c->error) {
		if (!c->items)
			c->values.n = 0;
		r = ky_cursor_next(c->reading.cursor, &c->item, &c->values);
		if (r > 0 && (c->item.kind == KY_ITEM_EVENT || c->query->wants_losses))
			add_row(c);
	}
	return c->error ? c->error : r;
}

/* Continues after a refresh of the reader. */
static int refresh_cursor(struct kymo_cursor *c)
{
	const struct ky_trace_reader *reader = c->query->reader->inside;
	uint8_t *want;
	int r;

	if (c->reading.generation == reader->generation)
		return 0;
	want = calloc(reader->n_classes + 1, 1);
	r = want ? bind_columns(c, want) : -ENOMEM;
	if (!r)
		r = ky_reading_refresh(&c->reading, want);
	free(want);
	return r;
}

KYMO_READER_API void kymo_cursor_until(struct kymo_cursor *cursor, int64_t ns)
{
	ky_cursor_until(cursor->reading.cursor, ns);
}

KYMO_READER_API int kymo_cursor_next(
	struct kymo_cursor *cursor, const struct kymo_batch **ret_batch)
{
	struct kymo_cursor *c = cursor;
	int r;

	empty_batch(c);
	r = refresh_cursor(c);
	if (!r)
		r = fill_batch(c);
	if (r < 0)
		return r;
	for (size_t k = 0; k < c->query->n_columns; k++) {
		struct column_data *d = &c->data[k];
		bool is_text = c->query->columns[k].type == KYMO_TEXT;

		c->columns[k] = (struct kymo_column){.type = c->query->columns[k].type,
			.values = is_text ? (const void *)(d->text.data ? d->text.data : "")
					  : d->values,
			.valid = d->valid,
			.ends = is_text ? d->ends : NULL};
	}
	c->batch = (struct kymo_batch){.n = c->batch.n,
		.n_columns = c->query->n_columns,
		.item = c->kind,
		.ns = c->ns,
		.class_index = c->class_index,
		.stream = c->stream,
		.lost = c->lost,
		.end_ns = c->end_ns,
		.columns = c->columns,
		.internal = c};
	*ret_batch = &c->batch;
	return c->batch.n > 0;
}

KYMO_READER_API int kymo_batch_format(const struct kymo_batch *batch, size_t row,
	enum kymo_format format, const char **ret_text, size_t *ret_len)
{
	struct kymo_cursor *c = (struct kymo_cursor *)batch->internal;
	const struct ky_item *item;

	if (!c->items || row >= batch->n)
		return -EINVAL;
	item = &c->items[row];
	if (row && row != c->next_line)
		c->format.had_time = false;
	c->next_line = row + 1;
	c->line.len = 0;
	c->line.max = KY_TEXT_MAX;
	if (item->kind != KY_ITEM_EVENT)
		ky_format_lost(&c->format, &c->line, item);
	else if (format == KYMO_FORMAT_JSON)
		ky_format_json(&c->format, &c->line, item);
	else if (format == KYMO_FORMAT_JSON_FIELDS)
		ky_format_json_fields(&c->line, item);
	else if (format == KYMO_FORMAT_FIELDS)
		ky_format_fields(&c->format, &c->line, item);
	else
		ky_format_text(&c->format, &c->line, item);
	if (c->line.error)
		return c->line.error;
	*ret_text = c->line.data ? c->line.data : "";
	*ret_len = c->line.len;
	return 0;
}
