/* SPDX-License-Identifier: MIT */
/*
 * Names of events and fields come from programs. A name that another table or column has already,
 * in any case of letters, gets "_" behind it, because SQL does not distinguish them; if that is
 * taken too, "_" and a number. No such number is tried twice, so that many equal names take linear
 * time.
 */
#include "tables/tables.h"

#include <strings.h>

#include "base/htab.h"

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

/* Contexts that fixed columns show; only if an event does not have the preferred one. */
static const struct {
	const char *name, *preferred;
} shown_as_fixed[] = {{"cpu_id", NULL}, {"vpid", NULL}, {"pid", "vpid"}, {"vtid", NULL},
	{"tid", "vtid"}, {"procname", NULL}, {"packet_seq_num", NULL}};

/* --- names --- */

/* The kinds of names. SQL does not distinguish cases of letters in the first two. */
enum name_kind { NAME_OF_TABLE, NAME_OF_COLUMN, NAME_OF_EVENT, PATH_OF_FIELD, LABEL_OF_FIELD };

struct name {
	struct ky_hnode node;
	enum name_kind kind;
	size_t table;  /* of a column or field: number of its table, else 0 */
	size_t number; /* of the table or column that has the name */
	const char *text;
};

/* The tables while they are described. */
struct draft {
	struct ky_tables *t;
	struct ky_htab names;
	size_t n_numbered; /* names that have got a number behind them */
	bool error;	   /* there was no memory */
};

static bool ignores_case(enum name_kind kind)
{
	return kind == NAME_OF_TABLE || kind == NAME_OF_COLUMN;
}

static uint32_t hash_name(struct draft *d, enum name_kind kind, size_t table, const char *text)
{
	size_t len = strlen(text);
	char *key = malloc(len + 1);
	uint32_t hash;

	if (!key) {
		d->error = true;
		return 0;
	}
	for (size_t i = 0; i <= len; i++)
		key[i] = ignores_case(kind) && text[i] >= 'A' && text[i] <= 'Z'
				 ? (char)(text[i] - 'A' + 'a')
				 : text[i];
	hash = ky_hash(key, len) ^ ((uint32_t)table * 8 + kind) * 0x9e3779b1u;
	free(key);
	return hash;
}

static const struct name *find_name(
	struct draft *d, enum name_kind kind, size_t table, const char *text)
{
	struct ky_hnode *n = ky_htab_first(&d->names, hash_name(d, kind, table, text));

	for (; n; n = ky_htab_next(n)) {
		const struct name *name = ky_container_of(n, struct name, node);

		if (name->kind == kind && name->table == table &&
			!(ignores_case(kind) ? strcasecmp : strcmp)(name->text, text))
			return name;
	}
	return NULL;
}

/* text: stays where it is. */
static bool add_name(
	struct draft *d, enum name_kind kind, size_t table, const char *text, size_t number)
{
	struct name *name = text ? malloc(sizeof(*name)) : NULL;

	if (!name)
		return false;
	*name = (struct name){.kind = kind, .table = table, .number = number, .text = text};
	if (ky_htab_add(&d->names, &name->node, hash_name(d, kind, table, text)) || d->error) {
		free(name);
		return false;
	}
	return true;
}

static void free_names(struct draft *d)
{
	ky_htab_free_all(&d->names, struct name, node);
}

/* Returns the texts as one name that nothing of this kind has; NULL without memory. */
static char *unique_name(
	struct draft *d, enum name_kind kind, size_t table, const char *text, const char *ending)
{
	size_t len = strlen(text) + strlen(ending);
	char *name = malloc(len + sizeof("_18446744073709551615"));

	if (!name)
		return NULL;
	sprintf(name, "%s%s", text, ending);
	if (find_name(d, kind, table, name))
		strcpy(name + len, "_");
	while (find_name(d, kind, table, name) && !d->error)
		sprintf(name + len, "_%zu", ++d->n_numbered);
	return name;
}

/* --- columns --- */

/* Adds a column; `field` is copied. Returns NULL if there is no memory. */
static struct ky_table_column *add_column(struct draft *d, struct ky_table *t, const char *name,
	const char *ending, const char *field)
{
	struct ky_table_column *more = reallocarray(t->columns, t->n_columns + 1, sizeof(*more)),
			       *c;
	size_t table = (size_t)(t - d->t->tables);

	if (!more)
		return NULL;
	t->columns = more;
	c = &more[t->n_columns];
	*c = (struct ky_table_column){.name = unique_name(d, NAME_OF_COLUMN, table, name, ending),
		.field = field ? strdup(field) : NULL};
	if (!c->name || (field && !c->field)) {
		free(c->name);
		free(c->field);
		return NULL;
	}
	return add_name(d, NAME_OF_COLUMN, table, c->name, t->n_columns++) ? c : NULL;
}

static bool add_fixed(
	struct draft *d, struct ky_table *t, const struct fixed_column *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ky_table_column *c;

		if (t->kind == KY_TABLE_CLASS && (i == KY_EVENT_NAME || i == KY_EVENT_FIELDS))
			continue;
		c = add_column(d, t, list[i].name, "", NULL);
		if (!c)
			return false;
		c->type = list[i].type;
		c->fixed = (int)i;
	}
	return true;
}

/* Only integers have a base. */
static bool is_enum(const struct kymo_event_field *f)
{
	return f->type == KYMO_TEXT && f->base;
}

static enum ky_cell_type type_of(const struct kymo_event_field *f)
{
	if (is_enum(f))
		return f->bits < 64 ? KY_CELL_INT : KY_CELL_NULL;
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

/* The types of the values of a field: an enumeration has numbers with or without a sign. */
static unsigned types_of(const struct kymo_event_field *f)
{
	return is_enum(f) ? 1u << KYMO_INT64 | 1u << KYMO_UINT64 : 1u << f->type;
}

static bool add_label(
	struct draft *d, struct ky_table *t, const struct kymo_event_field *f, const char *path)
{
	size_t table = (size_t)(t - d->t->tables);
	struct ky_table_column *c;

	if (!f->n_labels || find_name(d, LABEL_OF_FIELD, table, path))
		return true;
	if (t->n_columns == KY_TABLE_COLUMNS_MAX) {
		d->t->n_fields_left_out++;
		return true;
	}
	c = add_column(d, t, f->name, "_label", path);
	if (!c || !add_name(d, LABEL_OF_FIELD, table, c->field, t->n_columns - 1))
		return false;
	c->type = KY_CELL_TEXT;
	c->is_label = true;
	return true;
}

static bool add_field(
	struct draft *d, struct ky_table *t, const struct kymo_event_field *f, const char *path)
{
	/* a class of the same name may have the field, too */
	size_t table = (size_t)(t - d->t->tables);
	const struct name *known = find_name(d, PATH_OF_FIELD, table, path);
	struct ky_table_column *c = known ? &t->columns[known->number] : NULL;
	enum ky_cell_type type = type_of(f);

	if (!c && t->n_columns + 2 > KY_TABLE_COLUMNS_MAX) {
		d->t->n_fields_left_out++;
		return true;
	}
	if (!c) {
		c = add_column(d, t, f->name, "", path);
		if (!c || !add_name(d, PATH_OF_FIELD, table, c->field, t->n_columns - 1))
			return false;
		c->type = type;
	}
	c->type = c->type == type ? type : KY_CELL_NULL;
	c->types |= types_of(f);
	return add_label(d, t, f, path);
}

static bool has_context(const struct kymo_event_class *c, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < c->n_fields && !found; i++)
		found = c->fields[i].scope != KYMO_SCOPE_FIELDS && !strcmp(c->fields[i].name, name);
	return found;
}

static bool is_shown_as_fixed(const struct kymo_event_class *c, const char *name)
{
	for (size_t i = 0; i < KY_ARRAY_SIZE(shown_as_fixed); i++) {
		const char *preferred = shown_as_fixed[i].preferred;

		if (!strcmp(shown_as_fixed[i].name, name))
			return !preferred || !has_context(c, preferred);
	}
	return false;
}

/* Adds the columns of a class: its fields, then its contexts. */
static bool add_fields(struct draft *d, struct ky_table *t, const struct kymo_event_class *c)
{
	bool ok = true;
	char *path;

	for (size_t i = 0; i < c->n_fields && ok; i++)
		if (c->fields[i].scope == KYMO_SCOPE_FIELDS)
			ok = add_field(d, t, &c->fields[i], c->fields[i].name);
	for (size_t i = 0; i < c->n_fields && ok; i++) {
		const struct kymo_event_field *f = &c->fields[i];

		if (f->scope == KYMO_SCOPE_FIELDS || is_shown_as_fixed(c, f->name))
			continue;
		ok = asprintf(&path, "$ctx.%s", f->name) >= 0;
		if (ok) {
			ok = add_field(d, t, f, path);
			free(path);
		}
	}
	return ok;
}

/* --- tables --- */

/* events, spans, lost, packets, streams, classes */
#define N_FIXED_TABLES 6u

/* SQLite reserves names that begin with "sqlite_". */
static bool is_reserved(const char *name)
{
	return !strncasecmp(name, "sqlite_", 7);
}

static struct ky_table *add_table(struct draft *d, enum ky_table_kind kind, const char *name)
{
	struct ky_tables *t = d->t;
	struct ky_table *more = reallocarray(t->tables, t->n + 1, sizeof(*more)), *table;

	if (!more)
		return NULL;
	t->tables = more;
	table = &more[t->n];
	*table = (struct ky_table){.kind = kind,
		.name = is_reserved(name) ? unique_name(d, NAME_OF_TABLE, 0, "_", name)
					  : unique_name(d, NAME_OF_TABLE, 0, name, "")};
	if (!table->name)
		return NULL;
	return add_name(d, NAME_OF_TABLE, 0, table->name, t->n++) ? table : NULL;
}

static bool add_fixed_table(struct draft *d, enum ky_table_kind kind, const char *name,
	const struct fixed_column *list, size_t n)
{
	struct ky_table *table = add_table(d, kind, name);

	return table && add_fixed(d, table, list, n);
}

static bool add_class(struct draft *d, size_t i)
{
	const struct kymo_event_class *c = kymo_reader_class(d->t->reader, i);
	const struct name *known = find_name(d, NAME_OF_EVENT, 0, c->name);
	struct ky_table *table = known ? &d->t->tables[known->number] : NULL;

	if (!table && d->t->n >= KY_TABLES_MAX) {
		d->t->n_classes_left_out++;
		return true;
	}
	if (!table) {
		table = add_table(d, KY_TABLE_CLASS, c->name);
		if (!table || !add_fixed(d, table, COLUMNS(of_events)))
			return false;
		table->event = strdup(c->name);
		if (!add_name(d, NAME_OF_EVENT, 0, table->event, d->t->n - 1))
			return false;
	}
	d->t->table_of[i] = (size_t)(table - d->t->tables);
	return add_fields(d, table, c);
}

/* Notes which classes the part has. */
static int select_classes(struct ky_tables *t)
{
	struct kymo_query *q = NULL;
	int r = kymo_query_new(&q, t->reader);

	t->selected = calloc(kymo_reader_n_classes(t->reader) + 1, 1);
	t->table_of = calloc(kymo_reader_n_classes(t->reader) + 1, sizeof(*t->table_of));
	if (!t->selected || !t->table_of)
		r = -ENOMEM;
	if (!r && t->part.events)
		r = kymo_query_events(q, t->part.events);
	for (size_t i = 0; !r && i < kymo_reader_n_classes(t->reader); i++) {
		t->selected[i] = kymo_query_has_class(q, i) != 0;
		t->table_of[i] = KY_NO_TABLE;
	}
	kymo_query_free(q);
	return r;
}

int ky_tables_init(
	struct ky_tables *t, struct kymo_reader *reader, const struct ky_tables_part *part)
{
	struct draft d = {.t = t};
	bool ok = true;
	int r;

	*t = (struct ky_tables){.reader = reader, .part = *part};
	r = select_classes(t);
	if (r)
		return r;
	for (size_t i = 0; i < kymo_reader_n_streams(reader); i++)
		t->n_bytes += (double)kymo_reader_stream(reader, i)->n_bytes;
	ok = add_fixed_table(&d, KY_TABLE_EVENTS, "events", COLUMNS(of_events)) &&
	     add_fixed_table(&d, KY_TABLE_SPANS, "spans", COLUMNS(of_spans)) &&
	     add_fixed_table(&d, KY_TABLE_LOST, "lost", COLUMNS(of_lost)) &&
	     add_fixed_table(&d, KY_TABLE_PACKETS, "packets", COLUMNS(of_packets)) &&
	     add_fixed_table(&d, KY_TABLE_STREAMS, "streams", COLUMNS(of_streams)) &&
	     add_fixed_table(&d, KY_TABLE_CLASSES, "classes", COLUMNS(of_classes));
	for (size_t i = 0; ok && i < kymo_reader_n_classes(reader); i++)
		if (t->selected[i])
			ok = add_class(&d, i);
	ok &= !d.error;
	free_names(&d);
	return ok ? 0 : -ENOMEM;
}

bool ky_tables_left_out(const struct ky_tables *t, char text[KY_TABLES_TEXT])
{
	if (t->n_classes_left_out)
		snprintf(text, KY_TABLES_TEXT,
			"there are more names of events than the %u that can have tables",
			KY_TABLES_MAX - N_FIXED_TABLES);
	else if (t->n_fields_left_out)
		snprintf(text, KY_TABLES_TEXT,
			"an event has more fields than the %u columns that a table can have",
			KY_TABLE_COLUMNS_MAX);
	return t->n_classes_left_out || t->n_fields_left_out;
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
	free(t->table_of);
	*t = (struct ky_tables){0};
}
