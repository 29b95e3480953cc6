/* SPDX-License-Identifier: MIT */
#include "export/timeline.h"

#include <math.h>

#include "export/out.h"

/* How an event of a span is shown, by its number among them. */
enum role {
	ROLE_ALONE = 0,
	ROLE_NESTED,
	ROLE_LANE,
};

/* Columns of the query. */
enum column {
	COLUMN_VPID,
	COLUMN_PID,
	COLUMN_VTID,
	COLUMN_TID,
	COLUMN_SPAN_TID,
	COLUMN_CPU,
	COLUMN_PROCNAME,
	COLUMN_ASYNC_ID,
	COLUMN_FLOW_ID,
	COLUMN_COUNTER, /* integers of any sign */
	COLUMN_COUNTER_REAL,
	N_COLUMNS,
};

static const struct {
	const char *name;
	enum kymo_column_type type;
} columns[N_COLUMNS] = {
	[COLUMN_VPID] = {"$ctx.vpid", KYMO_INT64},
	[COLUMN_PID] = {"$ctx.pid", KYMO_INT64},
	[COLUMN_VTID] = {"$ctx.vtid", KYMO_INT64},
	[COLUMN_TID] = {"$ctx.tid", KYMO_INT64},
	[COLUMN_SPAN_TID] = {"span_tid", KYMO_INT64},
	[COLUMN_CPU] = {"$ctx.cpu_id", KYMO_INT64},
	[COLUMN_PROCNAME] = {"$ctx.procname", KYMO_TEXT},
	[COLUMN_ASYNC_ID] = {"async_id", KYMO_TEXT},
	[COLUMN_FLOW_ID] = {"flow_id", KYMO_TEXT},
	[COLUMN_COUNTER] = {"counter", KYMO_UINT64},
	[COLUMN_COUNTER_REAL] = {"counter", KYMO_DOUBLE},
};

/* Describes a class of events, by its name and its fields. */
struct kind {
	bool is_thread_span, is_async_span, is_begin, is_end;
	enum kymo_column_type counter; /* KYMO_ANY: it has none */
	enum ky_mark_flow flow;
	size_t base_len; /* of the name, without its ending */
};

struct timeline {
	const struct ky_tables *tables;
	struct kind *kinds; /* owned: by class */
	uint8_t *roles;	    /* owned: enum role; by number of a span's event */
	size_t n_roles;
	uint64_t n_span_events;	 /* so far */
	struct ky_out_room room; /* for the text that is read, which the output need not have */
	struct ky_buf lane;
};

/* --- pairs --- */

static int set_role(struct timeline *t, uint64_t number, enum role role)
{
	size_t n = KY_MAX(2 * t->n_roles, (size_t)number + 1);
	uint8_t *more;

	if (number >= t->n_roles) {
		more = realloc(t->roles, n);
		if (!more)
			return -ENOMEM;
		memset(more + t->n_roles, ROLE_ALONE, n - t->n_roles);
		t->roles = more;
		t->n_roles = n;
	}
	t->roles[number] = (uint8_t)role;
	return 0;
}

static int add_pairs(struct timeline *t, const struct kymo_span_batch *b)
{
	int r = 0;

	for (size_t i = 0; i < b->n && !r; i++) {
		enum role role = b->flags[i] ? ROLE_LANE : ROLE_NESTED;

		r = set_role(t, b->number[i], role);
		if (!r)
			r = set_role(t, b->end_number[i], role);
	}
	return r;
}

static int find_pairs(struct timeline *t)
{
	const struct kymo_span_batch *b;
	struct kymo_query *q = NULL;
	struct kymo_spans *spans = NULL;
	int r = ky_tables_query(t->tables, &q);

	if (!r)
		r = kymo_spans_open(&spans, q, NULL, NULL);
	while (!r && (r = kymo_spans_next(spans, &b)) > 0)
		r = add_pairs(t, b);
	kymo_spans_close(spans);
	kymo_query_free(q);
	return r;
}

/* --- classes --- */

/* Returns the type of a field; KYMO_ANY: there is none of this name. */
static enum kymo_column_type type_of_field(const struct kymo_event_class *c, const char *name)
{
	for (size_t i = 0; i < c->n_fields; i++)
		if (c->fields[i].scope == KYMO_SCOPE_FIELDS && !strcmp(c->fields[i].name, name))
			return c->fields[i].type;
	return KYMO_ANY;
}

static bool has_field(const struct kymo_event_class *c, const char *name)
{
	return type_of_field(c, name) != KYMO_ANY;
}

static bool ends_with(const char *name, size_t len, const char *ending)
{
	size_t n = strlen(ending);

	return len > n && !memcmp(name + len - n, ending, n);
}

static void describe_kind(struct kind *k, const struct kymo_event_class *c)
{
	size_t len = strlen(c->name);
	const char *ending = ends_with(c->name, len, "_begin")	? "_begin"
			     : ends_with(c->name, len, "_end")	? "_end"
			     : ends_with(c->name, len, "_step") ? "_step"
								: "";

	k->base_len = len - strlen(ending);
	k->is_begin = !strcmp(ending, "_begin");
	k->is_end = !strcmp(ending, "_end");
	k->is_async_span = has_field(c, "async_id");
	k->is_thread_span = !k->is_async_span && has_field(c, "span_tid");
	k->counter = type_of_field(c, "counter");
	if (has_field(c, "flow_id") && *ending)
		k->flow = k->is_begin ? KY_FLOW_BEGIN : k->is_end ? KY_FLOW_END : KY_FLOW_STEP;
}

/* --- marks --- */

static bool get_number(const struct kymo_batch *b, size_t row, enum column column, int64_t *ret)
{
	if (!kymo_batch_has(b, column, row))
		return false;
	*ret = ((const int64_t *)b->columns[column].values)[row];
	return true;
}

static const char *get_text(
	const struct kymo_batch *b, size_t row, enum column column, size_t *ret_len)
{
	*ret_len = 0;
	return kymo_batch_has(b, column, row) ? kymo_batch_text(b, column, row, ret_len) : NULL;
}

static void set_owner(struct ky_mark *m, const struct kymo_batch *b, size_t row)
{
	m->pid = m->tid = m->cpu = -1;
	if (!get_number(b, row, COLUMN_VPID, &m->pid))
		get_number(b, row, COLUMN_PID, &m->pid);
	if (!get_number(b, row, COLUMN_VTID, &m->tid) && !get_number(b, row, COLUMN_TID, &m->tid))
		get_number(b, row, COLUMN_SPAN_TID, &m->tid);
	get_number(b, row, COLUMN_CPU, &m->cpu);
	m->procname = get_text(b, row, COLUMN_PROCNAME, &m->procname_len);
}

/* The lane of spans that are nested among each other: of one name, and one thread or number. */
static void set_lane(struct timeline *t, struct ky_mark *m, const struct kymo_batch *b, size_t row)
{
	size_t len;
	const char *id = get_text(b, row, COLUMN_ASYNC_ID, &len);

	t->lane.len = 0;
	if (id)
		ky_buf_printf(&t->lane, "%.*s", (int)len, id);
	else
		ky_buf_printf(&t->lane, "%lld/%lld", (long long)m->pid, (long long)m->tid);
	m->lane = t->lane.data ? t->lane.data : "";
	m->lane_len = t->lane.len;
}

static void set_span(struct timeline *t, struct ky_mark *m, const struct kind *k,
	const struct kymo_batch *b, size_t row)
{
	uint64_t number = ++t->n_span_events;
	enum role role = number < t->n_roles ? t->roles[number] : ROLE_ALONE;

	if (role == ROLE_ALONE)
		return;
	m->name_len = k->base_len;
	if (role == ROLE_NESTED)
		m->kind = k->is_begin ? KY_MARK_BEGIN : KY_MARK_END;
	else
		m->kind = k->is_begin ? KY_MARK_LANE_BEGIN : KY_MARK_LANE_END;
	if (role == ROLE_LANE)
		set_lane(t, m, b, row);
}

/* Only numbers are counters: viewers know neither texts, nor infinity. */
static void set_counter(
	struct ky_mark *m, enum kymo_column_type type, const struct kymo_batch *b, size_t row)
{
	bool is_real = type == KYMO_DOUBLE;
	enum column column = is_real ? COLUMN_COUNTER_REAL : COLUMN_COUNTER;

	if (type == KYMO_ANY || type == KYMO_TEXT || !kymo_batch_has(b, column, row))
		return;
	if (is_real)
		m->real = ((const double *)b->columns[column].values)[row];
	else
		m->number = ((const uint64_t *)b->columns[column].values)[row];
	if (is_real && !isfinite(m->real))
		return;
	m->kind = KY_MARK_COUNTER;
	m->value_type = type;
}

static void set_event(struct timeline *t, struct ky_mark *m, const struct kymo_batch *b, size_t row)
{
	const struct kymo_event_class *c = kymo_reader_class(
		t->tables->reader, b->class_index[row]);
	const struct kind *k = &t->kinds[b->class_index[row]];
	const struct kymo_stream_info *stream = kymo_reader_stream(
		t->tables->reader, b->stream[row]);

	m->name = c->name;
	m->name_len = strlen(m->name);
	m->stem_len = k->base_len;
	set_owner(m, b, row);
	if ((k->is_thread_span || k->is_async_span) && (k->is_begin || k->is_end) &&
		stream->has_times)
		set_span(t, m, k, b, row);
	m->flow_id = k->flow ? get_text(b, row, COLUMN_FLOW_ID, &m->flow_id_len) : NULL;
	m->flow = m->flow_id ? k->flow : KY_FLOW_NONE;
	set_counter(m, k->counter, b, row);
}

static bool take_room(struct timeline *t, const struct ky_mark *m)
{
	uint64_t n = m->fields_len + m->procname_len + m->lane_len + m->flow_id_len;

	if (n > t->room.left)
		return false;
	t->room.left -= n;
	return true;
}

static int put_mark(struct timeline *t, const struct kymo_batch *b, size_t row,
	int (*put)(void *arg, const struct ky_mark *mark), void *arg)
{
	static const char *const what[] = {[KYMO_ITEM_DISCARDED_EVENTS] = "events",
		[KYMO_ITEM_DISCARDED_PACKETS] = "packets",
		[KYMO_ITEM_DAMAGED] = "damaged data"};
	struct ky_mark m = {.kind = KY_MARK_INSTANT, .ns = b->ns[row], .end_ns = b->end_ns[row]};
	int r = 0;

	if (b->item[row] == KYMO_ITEM_EVENT) {
		set_event(t, &m, b, row);
		r = kymo_batch_format(b, row, KYMO_FORMAT_JSON_FIELDS, &m.fields, &m.fields_len);
	} else {
		m.kind = KY_MARK_LOST;
		m.pid = m.tid = m.cpu = -1;
		m.n_lost = b->lost[row];
		m.name = m.what = what[b->item[row]];
		m.name_len = strlen(m.name);
	}
	return r ? r : !take_room(t, &m) ? -EFBIG : put(arg, &m);
}

static int read_events(
	struct timeline *t, int (*put)(void *arg, const struct ky_mark *mark), void *arg)
{
	const struct kymo_batch *b;
	struct kymo_query *q = NULL;
	struct kymo_cursor *c = NULL;
	int r = ky_tables_query(t->tables, &q);

	for (size_t i = 0; i < N_COLUMNS && !r; i++)
		r = kymo_query_column(q, columns[i].name, columns[i].type, NULL);
	if (!r)
		r = kymo_query_lines(q, 1);
	if (!r)
		r = kymo_query_losses(q, 1);
	if (!r)
		r = kymo_cursor_open(&c, q);
	while (!r && (r = kymo_cursor_next(c, &b)) > 0) {
		r = 0;
		for (size_t i = 0; i < b->n && !r; i++)
			r = put_mark(t, b, i, put, arg);
	}
	kymo_cursor_close(c);
	kymo_query_free(q);
	return r;
}

int ky_timeline_read(const struct ky_tables *tables,
	int (*put)(void *arg, const struct ky_mark *mark), void *arg)
{
	struct timeline t = {.tables = tables, .room = ky_out_room(tables->n_bytes)};
	size_t n = kymo_reader_n_classes(tables->reader);
	int r;

	t.kinds = calloc(n + 1, sizeof(*t.kinds));
	r = t.kinds ? find_pairs(&t) : -ENOMEM;
	for (size_t i = 0; i < n && !r; i++)
		describe_kind(&t.kinds[i], kymo_reader_class(tables->reader, i));
	if (!r)
		r = read_events(&t, put, arg);
	free(t.kinds);
	free(t.roles);
	ky_buf_deinit(&t.lane);
	return r;
}
