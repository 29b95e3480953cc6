/* SPDX-License-Identifier: MIT */
/*
 * Names of events and fields come from programs. A name that another table or column has already,
 * in any case of letters, gets "_" behind it, because SQL does not distinguish them.
 */
#include "tables/tables.h"

#include <strings.h>

struct fixed_column {
	const char *name;
	enum ky_cell_type type;
};

static const struct fixed_column of_events[] = {
	[KY_EVENT_TS] = {"ts", KY_CELL_INT},
	[KY_EVENT_NAME] = {"name", KY_CELL_TEXT},
	[KY_EVENT_CPU] = {"cpu", KY_CELL_INT},
	[KY_EVENT_PID] = {"pid", KY_CELL_INT},
	[KY_EVENT_TID] = {"tid", KY_CELL_INT},
	[KY_EVENT_PROCNAME] = {"procname", KY_CELL_TEXT},
	[KY_EVENT_STREAM] = {"stream", KY_CELL_INT},
	[KY_EVENT_FIELDS] = {"fields", KY_CELL_TEXT},
};
/* Their order is that of the cases in scan.c. */
static const struct fixed_column of_spans[] = {{"ts", KY_CELL_INT}, {"dur", KY_CELL_INT},
	{"self", KY_CELL_INT}, {"name", KY_CELL_TEXT}, {"tid", KY_CELL_INT}, {"pid", KY_CELL_INT},
	{"depth", KY_CELL_INT}, {"parent", KY_CELL_INT}, {"async", KY_CELL_INT},
	{"id", KY_CELL_INT}};
static const struct fixed_column of_lost[] = {{"ts", KY_CELL_INT}, {"dur", KY_CELL_INT},
	{"n", KY_CELL_INT}, {"stream", KY_CELL_INT}, {"what", KY_CELL_TEXT}};
static const struct fixed_column of_packets[] = {{"ts", KY_CELL_INT}, {"dur", KY_CELL_INT},
	{"stream", KY_CELL_INT}, {"offset", KY_CELL_INT}, {"bytes", KY_CELL_INT},
	{"discarded", KY_CELL_INT}, {"path", KY_CELL_TEXT}};
static const struct fixed_column of_streams[] = {{"stream", KY_CELL_INT}, {"trace", KY_CELL_TEXT},
	{"host", KY_CELL_TEXT}, {"path", KY_CELL_TEXT}, {"class", KY_CELL_INT},
	{"instance", KY_CELL_INT}, {"bytes", KY_CELL_INT}, {"complete_from", KY_CELL_INT}};
static const struct fixed_column of_classes[] = {{"name", KY_CELL_TEXT}, {"id", KY_CELL_INT},
	{"trace", KY_CELL_TEXT}, {"stream_class", KY_CELL_INT}, {"log_level", KY_CELL_INT},
	{"fields", KY_CELL_TEXT}};

#define COLUMNS(list) (list), KY_ARRAY_SIZE(list)

/* Contexts that fixed columns show. */
static const char *const shown_as_fixed[] = {
	"cpu_id", "vpid", "pid", "vtid", "tid", "procname", "packet_seq_num"};

const char *ky_tables_event_name(const struct kymo_event_class *c)
{
	return *c->name ? c->name : "<unknown>";
}

/* --- columns --- */

static bool has_column(const struct ky_table *t, const char *name)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcasecmp(t->columns[i].name, name))
			return true;
	return false;
}

/* Adds a column; `field` is copied. Returns NULL if there is no memory. */
static struct ky_table_column *add_column(
	struct ky_table *t, const char *name, const char *ending, const char *field)
{
	struct ky_table_column *more = reallocarray(t->columns, t->n_columns + 1, sizeof(*more)),
			       *c;
	size_t len = strlen(name) + strlen(ending);

	if (!more)
		return NULL;
	t->columns = more;
	c = &more[t->n_columns];
	*c = (struct ky_table_column){0};
	c->name = malloc(len + t->n_columns + 2);
	c->field = field ? strdup(field) : NULL;
	if (!c->name || (field && !c->field)) {
		free(c->name);
		free(c->field);
		return NULL;
	}
	sprintf(c->name, "%s%s", name, ending);
	while (has_column(t, c->name))
		strcpy(c->name + len++, "_");
	t->n_columns++;
	return c;
}

static bool add_fixed(struct ky_table *t, const struct fixed_column *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ky_table_column *c;

		if (t->kind == KY_TABLE_CLASS && (i == KY_EVENT_NAME || i == KY_EVENT_FIELDS))
			continue;
		c = add_column(t, list[i].name, "", NULL);
		if (!c)
			return false;
		c->type = list[i].type;
		c->fixed = (int)i;
	}
	return true;
}

static enum ky_cell_type type_of(const struct kymo_event_field *f)
{
	if (f->n_labels)
		return KY_CELL_INT;
	switch (f->type) {
	case KYMO_UINT64:
		return f->bits < 64 ? KY_CELL_INT : KY_CELL_NULL;
	case KYMO_INT64:
		return KY_CELL_INT;
	case KYMO_DOUBLE:
		return KY_CELL_REAL;
	default:
		return KY_CELL_TEXT;
	}
}

/* Finds the column of a field that another class of the same name added. */
static struct ky_table_column *find_field(struct ky_table *t, const char *path)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].field && !strcmp(t->columns[i].field, path))
			return &t->columns[i];
	return NULL;
}

static bool add_field(struct ky_table *t, const struct kymo_event_field *f, const char *path)
{
	struct ky_table_column *c = find_field(t, path);
	enum ky_cell_type type = type_of(f);

	if (c) {
		c->is_enum |= f->n_labels > 0;
		c->type = c->type == type ? type : KY_CELL_NULL;
		return true;
	}
	c = add_column(t, f->name, "", path);
	if (!c)
		return false;
	c->type = type;
	c->is_enum = f->n_labels;
	if (!f->n_labels)
		return true;
	c = add_column(t, f->name, "_label", path);
	if (c) {
		c->type = KY_CELL_TEXT;
		c->is_label = true;
	}
	return c;
}

static bool is_shown_as_fixed(const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(shown_as_fixed); i++)
		if (!strcmp(shown_as_fixed[i], name))
			return true;
	return false;
}

/* Adds the columns of a class: its fields, then its contexts. */
static bool add_fields(struct ky_table *t, const struct kymo_event_class *c)
{
	bool ok = true;
	char *path;

	for (size_t i = 0; i < c->n_fields && ok; i++)
		if (c->fields[i].scope == KYMO_SCOPE_FIELDS)
			ok = add_field(t, &c->fields[i], c->fields[i].name);
	for (size_t i = 0; i < c->n_fields && ok; i++) {
		const struct kymo_event_field *f = &c->fields[i];

		if (f->scope == KYMO_SCOPE_FIELDS || is_shown_as_fixed(f->name))
			continue;
		ok = asprintf(&path, "$ctx.%s", f->name) >= 0;
		if (ok) {
			ok = add_field(t, f, path);
			free(path);
		}
	}
	return ok;
}

/* --- tables --- */

static bool has_table(const struct ky_tables *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcasecmp(t->tables[i].name, name))
			return true;
	return false;
}

/* SQLite reserves names that begin with "sqlite_". */
static bool is_reserved(const char *name)
{
	return !strncasecmp(name, "sqlite_", 7);
}

static struct ky_table *add_table(struct ky_tables *t, enum ky_table_kind kind, const char *name)
{
	struct ky_table *more = reallocarray(t->tables, t->n + 1, sizeof(*more)), *table;
	char *unique = malloc(strlen(name) + t->n + 3);
	size_t len;

	if (more)
		t->tables = more;
	if (!more || !unique) {
		free(unique);
		return NULL;
	}
	len = (size_t)sprintf(unique, "%s%s", is_reserved(name) ? "_" : "", name);
	while (has_table(t, unique))
		strcpy(unique + len++, "_");
	table = &more[t->n++];
	*table = (struct ky_table){.kind = kind, .name = unique};
	return table;
}

static bool add_fixed_table(struct ky_tables *t, enum ky_table_kind kind, const char *name,
	const struct fixed_column *list, size_t n)
{
	struct ky_table *table = add_table(t, kind, name);

	return table && add_fixed(table, list, n);
}

static struct ky_table *find_event(struct ky_tables *t, const char *event)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->tables[i].event && !strcmp(t->tables[i].event, event))
			return &t->tables[i];
	return NULL;
}

static bool add_class(struct ky_tables *t, const struct kymo_event_class *c)
{
	const char *event = ky_tables_event_name(c);
	struct ky_table *table = find_event(t, event);

	if (!table) {
		table = add_table(t, KY_TABLE_CLASS, event);
		if (!table || !add_fixed(table, COLUMNS(of_events)))
			return false;
		table->event = strdup(event);
	}
	return table->event && add_fields(table, c);
}

/* Notes which classes the part has. */
static int select_classes(struct ky_tables *t)
{
	struct kymo_query *q = NULL;
	int r = kymo_query_new(&q, t->reader);

	t->selected = calloc(kymo_reader_n_classes(t->reader) + 1, 1);
	if (!t->selected)
		r = -ENOMEM;
	if (!r && t->part.events)
		r = kymo_query_events(q, t->part.events);
	for (size_t i = 0; !r && i < kymo_reader_n_classes(t->reader); i++)
		t->selected[i] = kymo_query_has_class(q, i) != 0;
	kymo_query_free(q);
	return r;
}

int ky_tables_init(
	struct ky_tables *t, struct kymo_reader *reader, const struct ky_tables_part *part)
{
	bool ok = true;
	int r;

	*t = (struct ky_tables){.reader = reader, .part = *part};
	r = select_classes(t);
	if (r)
		return r;
	for (size_t i = 0; i < kymo_reader_n_streams(reader); i++)
		t->n_bytes += (double)kymo_reader_stream(reader, i)->n_bytes;
	ok = add_fixed_table(t, KY_TABLE_EVENTS, "events", COLUMNS(of_events)) &&
	     add_fixed_table(t, KY_TABLE_SPANS, "spans", COLUMNS(of_spans)) &&
	     add_fixed_table(t, KY_TABLE_LOST, "lost", COLUMNS(of_lost)) &&
	     add_fixed_table(t, KY_TABLE_PACKETS, "packets", COLUMNS(of_packets)) &&
	     add_fixed_table(t, KY_TABLE_STREAMS, "streams", COLUMNS(of_streams)) &&
	     add_fixed_table(t, KY_TABLE_CLASSES, "classes", COLUMNS(of_classes));
	for (size_t i = 0; ok && i < kymo_reader_n_classes(reader); i++)
		if (t->selected[i])
			ok = add_class(t, kymo_reader_class(reader, i));
	return ok ? 0 : -ENOMEM;
}

int ky_tables_query(const struct ky_tables *t, struct kymo_query **ret_query)
{
	int r = kymo_query_new(ret_query, t->reader);

	if (!r && t->part.events)
		r = kymo_query_events(*ret_query, t->part.events);
	if (!r && t->part.filter)
		r = kymo_query_filter(*ret_query, t->part.filter, NULL);
	return r ? r : kymo_query_time(*ret_query, t->part.from_ns, t->part.to_ns);
}

void ky_tables_deinit(struct ky_tables *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct ky_table *table = &t->tables[i];

		for (size_t k = 0; k < table->n_columns; k++) {
			free(table->columns[k].name);
			free(table->columns[k].field);
		}
		free(table->columns);
		free(table->name);
		free(table->event);
	}
	free(t->tables);
	free(t->selected);
	*t = (struct ky_tables){0};
}
