/* SPDX-License-Identifier: MIT */
/*
 * The module "kymo" of SQLite. A plan is a text: the columns that the statement uses, the column of
 * a join or -1, and a letter for each argument of the filter:
 *
 *	b, e, t	ts is at least, at most, equal to the argument
 *	n, g, l	name is equal to it, matches it by GLOB, by LIKE
 *	i	name is in the list
 *	c, s	cpu, stream are equal to it
 *	k	the column of the join is equal to it
 *
 * SQLite checks each condition again, so a scan may return more rows than were asked for.
 *
 * A table that another one is joined to is read once for each row of that one. The first such
 * reading is a scan; the second one makes a sorted copy of the columns in use, in which all further
 * ones search.
 */
#include "sql/sql.h"

#include <math.h>

#define MAX_ARGS 30

struct table {
	sqlite3_vtab base;
	const struct ky_tables *tables; /* borrowed */
	const struct ky_table *table;	/* borrowed */
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct ky_scan *scan; /* owned */
	struct ky_copy copy;
	size_t n_filters; /* how often it began */
	bool is_copied;	  /* rows are those of the copy */
	size_t at, end;	  /* of the copy's order */
	bool is_ordered;  /* the statement relies on the order by ts */
	int64_t last_ns;
	bool is_at_end;
	sqlite3_int64 row;
};

/* --- the table --- */

char *ky_sql_columns(const struct ky_table *t)
{
	static const char *const types[] = {[KY_CELL_NULL] = "",
		[KY_CELL_INT] = " INTEGER",
		[KY_CELL_REAL] = " REAL",
		[KY_CELL_TEXT] = " TEXT"};
	sqlite3_str *s = sqlite3_str_new(NULL);

	for (size_t i = 0; i < t->n_columns; i++)
		sqlite3_str_appendf(s, "%s\"%w\"%s", i ? ", " : "", t->columns[i].name,
			types[t->columns[i].type]);
	return sqlite3_str_finish(s);
}

static int declare_table(sqlite3 *db, const struct ky_table *t)
{
	char *columns = ky_sql_columns(t);
	char *text = columns ? sqlite3_mprintf("CREATE TABLE x(%s)", columns) : NULL;
	int r = text ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;

	sqlite3_free(columns);
	sqlite3_free(text);
	return r;
}

/* Argument 3 is the number of the table. */
static int connect_table(
	sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **error)
{
	const struct ky_tables *tables = aux;
	size_t i = argc > 3 ? strtoul(argv[3], NULL, 10) : SIZE_MAX;
	struct table *t;
	int r;

	if (i >= tables->n) {
		*error = sqlite3_mprintf("there is no such table of a trace");
		return SQLITE_ERROR;
	}
	t = calloc(1, sizeof(*t));
	r = t ? declare_table(db, &tables->tables[i]) : SQLITE_NOMEM;
	if (r != SQLITE_OK) {
		*error = sqlite3_mprintf("%s: %s", tables->tables[i].name, sqlite3_errmsg(db));
		free(t);
		return r;
	}
	t->tables = tables;
	t->table = &tables->tables[i];
	*ret = &t->base;
	return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *base)
{
	free(base);
	return SQLITE_OK;
}

/* --- plans --- */

static bool is_of_events(const struct ky_table *t)
{
	return t->kind == KY_TABLE_CLASS || t->kind == KY_TABLE_EVENTS;
}

static bool is_fixed(const struct ky_table *t, int column, enum ky_event_column fixed)
{
	return column >= 0 && is_of_events(t) && !t->columns[column].field &&
	       t->columns[column].fixed == (int)fixed;
}

static char letter_of_time(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_GE:
	case SQLITE_INDEX_CONSTRAINT_GT:
		return 'b';
	case SQLITE_INDEX_CONSTRAINT_LE:
	case SQLITE_INDEX_CONSTRAINT_LT:
		return 'e';
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return 't';
	default:
		return 0;
	}
}

static char letter_of_name(sqlite3_index_info *x, int i)
{
	switch (x->aConstraint[i].op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		if (sqlite3_libversion_number() >= 3038000 && sqlite3_vtab_in(x, i, 1))
			return 'i';
		return 'n';
	case SQLITE_INDEX_CONSTRAINT_GLOB:
		return 'g';
	case SQLITE_INDEX_CONSTRAINT_LIKE:
		return 'l';
	default:
		return 0;
	}
}

static bool is_binary(sqlite3_index_info *x, int i)
{
	const char *collation = sqlite3_vtab_collation(x, i);

	return !collation || !sqlite3_stricmp(collation, "BINARY");
}

/* A value that is not known while the statement is planned is that of another table, or bound. */
static bool may_be_join(sqlite3_index_info *x, int i)
{
	sqlite3_value *value;

	return sqlite3_libversion_number() >= 3038000 &&
	       x->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
	       x->aConstraint[i].iColumn >= 0 && is_binary(x, i) &&
	       sqlite3_vtab_rhs_value(x, i, &value) != SQLITE_OK;
}

/* The letter of a condition; 0: the scan does not use it. */
static char letter_of(const struct ky_table *t, sqlite3_index_info *x, int i)
{
	const struct sqlite3_index_constraint *c = &x->aConstraint[i];
	bool is_equal = c->op == SQLITE_INDEX_CONSTRAINT_EQ;

	if (!c->usable)
		return 0;
	if (is_fixed(t, c->iColumn, KY_EVENT_TS) && !may_be_join(x, i))
		return letter_of_time(c->op);
	if (is_fixed(t, c->iColumn, KY_EVENT_NAME) && is_binary(x, i))
		return letter_of_name(x, i);
	if (is_fixed(t, c->iColumn, KY_EVENT_CPU) && is_equal && !may_be_join(x, i))
		return 'c';
	if (is_fixed(t, c->iColumn, KY_EVENT_STREAM) && is_equal && !may_be_join(x, i))
		return 's';
	return may_be_join(x, i) ? 'k' : 0;
}

/* The part of the rows that is left by a condition: a guess. */
static double share_of(char letter)
{
	switch (letter) {
	case 't':
		return 1e-6;
	case 'b':
	case 'e':
		return 0.25;
	case 'n':
		return 0.05;
	case 'k':
		return 1e-5;
	default:
		return 0.2;
	}
}

/* A statement that uses any column beyond the 63rd has one bit for all of them. */
static bool is_used(sqlite3_uint64 used, size_t column)
{
	return used >> KY_MIN(column, (size_t)63) & 1;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *x)
{
	struct table *t = (struct table *)base;
	double n = t->tables->n_bytes / 16 + 10, rows = n;
	char plan[MAX_ARGS + 1] = "";
	int n_args = 0, key = -1;

	for (int i = 0; i < x->nConstraint && n_args < MAX_ARGS; i++) {
		char letter = letter_of(t->table, x, i);

		if (!letter || (letter == 'k' && key >= 0))
			continue;
		if (letter == 'k')
			key = x->aConstraint[i].iColumn;
		plan[n_args] = letter;
		x->aConstraintUsage[i].argvIndex = ++n_args;
		rows *= share_of(letter);
	}
	rows = KY_MAX(rows, 1.0);
	plan[n_args] = '\0';
	x->orderByConsumed = key < 0 && x->nOrderBy == 1 && !x->aOrderBy[0].desc &&
			     is_fixed(t->table, x->aOrderBy[0].iColumn, KY_EVENT_TS);
	x->idxNum = x->orderByConsumed;
	x->idxStr = sqlite3_mprintf("%llx %d %s", x->colUsed, key, plan);
	x->needToFreeIdxStr = 1;
	/* Time alone spares reading; a copy costs once what a scan costs. */
	x->estimatedCost = key >= 0 ? rows + 100 : rows + n * (n_args ? 0.1 : 0.3);
	x->estimatedRows = (sqlite3_int64)rows;
	return x->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* --- limits --- */

struct limits {
	struct ky_scan_limits scan;
	uint8_t *columns, *classes; /* owned */
	bool is_empty;		    /* no row can match */
	sqlite3_value *key;	    /* of a join */
};

static void free_limits(struct limits *l)
{
	free(l->columns);
	free(l->classes);
}

/* Returns false if the value is no number: it then limits nothing. */
static bool get_range(sqlite3_value *v, int64_t *ret_from, int64_t *ret_to)
{
	double d;

	switch (sqlite3_value_numeric_type(v)) {
	case SQLITE_INTEGER:
		*ret_from = *ret_to = sqlite3_value_int64(v);
		return true;
	case SQLITE_FLOAT:
		d = sqlite3_value_double(v);
		*ret_from = d < -0x1p63 ? INT64_MIN : d >= 0x1p63 ? INT64_MAX : (int64_t)floor(d);
		*ret_to = d <= -0x1p63 ? INT64_MIN : d >= 0x1p63 ? INT64_MAX : (int64_t)ceil(d);
		return true;
	default:
		return false;
	}
}

static void limit_time(struct limits *l, char letter, sqlite3_value *v)
{
	int64_t from, to;

	if (!get_range(v, &from, &to))
		return;
	if (letter != 'e')
		l->scan.from_ns = KY_MAX(l->scan.from_ns, from);
	if (letter != 'b')
		l->scan.to_ns = KY_MIN(l->scan.to_ns, to);
}

static void limit_number(bool *has, int64_t *number, sqlite3_value *v)
{
	*has = sqlite3_value_numeric_type(v) == SQLITE_INTEGER;
	*number = *has ? sqlite3_value_int64(v) : 0;
}

static bool is_equal(const char *name, sqlite3_value *v)
{
	const char *text = (const char *)sqlite3_value_text(v);

	return text && !strcmp(name, text);
}

static bool is_in(const char *name, sqlite3_value *list)
{
	sqlite3_value *v;

	for (int r = sqlite3_vtab_in_first(list, &v); r == SQLITE_OK;
		r = sqlite3_vtab_in_next(list, &v))
		if (is_equal(name, v))
			return true;
	return false;
}

static bool name_matches(const char *name, char letter, sqlite3_value *v)
{
	const char *text;

	if (letter == 'i')
		return is_in(name, v);
	if (letter == 'n')
		return is_equal(name, v);
	text = (const char *)sqlite3_value_text(v);
	if (!text)
		return true;
	return letter == 'g' ? !sqlite3_strglob(text, name) : !sqlite3_strlike(text, name, 0);
}

static int limit_name(
	struct limits *l, const struct ky_tables *tables, char letter, sqlite3_value *v)
{
	size_t n = kymo_reader_n_classes(tables->reader);

	if (!l->classes) {
		l->classes = malloc(n + 1);
		if (!l->classes)
			return SQLITE_NOMEM;
		memset(l->classes, 1, n + 1);
		l->scan.classes = l->classes;
	}
	for (size_t i = 0; i < n; i++)
		l->classes[i] &= name_matches(
			kymo_reader_class(tables->reader, i)->name, letter, v);
	return SQLITE_OK;
}

static int add_limit(
	struct limits *l, const struct ky_tables *tables, char letter, sqlite3_value *v)
{
	if (letter != 'i' && sqlite3_value_type(v) == SQLITE_NULL) {
		l->is_empty = true;
		return SQLITE_OK;
	}
	switch (letter) {
	case 'b':
	case 'e':
	case 't':
		limit_time(l, letter, v);
		return SQLITE_OK;
	case 'c':
		limit_number(&l->scan.has_cpu, &l->scan.cpu, v);
		return SQLITE_OK;
	case 's':
		limit_number(&l->scan.has_stream, &l->scan.stream, v);
		return SQLITE_OK;
	case 'k':
		l->key = v;
		return SQLITE_OK;
	default:
		return limit_name(l, tables, letter, v);
	}
}

/* --- cursors --- */

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **ret)
{
	struct cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return SQLITE_NOMEM;
	*ret = &c->base;
	return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	ky_scan_close(c->scan);
	ky_copy_deinit(&c->copy);
	free(c);
	return SQLITE_OK;
}

static const struct table *table_of(const struct cursor *c)
{
	return (const struct table *)c->base.pVtab;
}

static int set_table_error(struct cursor *c, char *text)
{
	sqlite3_free(c->base.pVtab->zErrMsg);
	c->base.pVtab->zErrMsg = text;
	return SQLITE_ERROR;
}

/* A scan has ended with an error. */
static int fail_scan(struct cursor *c, int error)
{
	if (error != -EFBIG)
		return SQLITE_NOMEM;
	return set_table_error(c,
		sqlite3_mprintf("the rows have too much text, more than %d bytes for each byte of "
				"the trace: its names or labels are too long; select other columns",
			KY_SCAN_TEXT_PER_BYTE));
}

/* A damaged clock may go back: rows would not be in the order that the statement asks for. */
static int check_order(struct cursor *c)
{
	struct ky_cell ts;

	ky_scan_cell(c->scan, KY_EVENT_TS, &ts);
	if (ts.type == KY_CELL_NULL)
		ts.i = INT64_MIN; /* without clock; SQLite sorts NULL first */
	if (c->row > 1 && ts.i < c->last_ns)
		return set_table_error(
			c, sqlite3_mprintf(
				   "times go back in this trace: write ORDER BY +ts, which sorts"));
	c->last_ns = ts.i;
	return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int r;

	c->row++;
	if (c->is_copied) {
		c->is_at_end = ++c->at >= c->end;
		return SQLITE_OK;
	}
	r = ky_scan_next(c->scan);
	c->is_at_end = r <= 0;
	if (r < 0)
		return fail_scan(c, r);
	return c->is_ordered && !c->is_at_end ? check_order(c) : SQLITE_OK;
}

/* Makes the copy at the second time, and searches it. */
static int search_copy(struct cursor *c, const struct limits *l, size_t key)
{
	struct ky_scan_limits all = KY_SCAN_ALL;
	const struct table *t = table_of(c);
	int r = 0;

	if (!c->copy.order) {
		all.columns = l->columns;
		ky_scan_close(c->scan);
		c->scan = NULL;
		r = ky_scan_open(&c->scan, t->tables, t->table, &all);
		if (!r)
			r = ky_copy_make(&c->copy, c->scan, t->table, l->columns, key);
		ky_scan_close(c->scan);
		c->scan = NULL;
	}
	if (!r)
		r = ky_copy_find(&c->copy, l->key, &c->at, &c->end);
	if (r)
		return fail_scan(c, r);
	c->is_copied = true;
	c->is_at_end = c->at >= c->end;
	return SQLITE_OK;
}

static int begin_scan(struct cursor *c, const struct limits *l)
{
	const struct table *t = table_of(c);
	int r;

	ky_scan_close(c->scan);
	c->scan = NULL;
	r = ky_scan_open(&c->scan, t->tables, t->table, &l->scan);
	if (r == -ENOMEM)
		return SQLITE_NOMEM;
	if (r)
		return set_table_error(
			c, sqlite3_mprintf("cannot read the trace: %s", strerror(-r)));
	return next_row(&c->base);
}

static int filter_rows(
	sqlite3_vtab_cursor *base, int ordered, const char *plan, int argc, sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	const struct table *t = table_of(c);
	struct limits l = {.scan = KY_SCAN_ALL};
	char *end;
	sqlite3_uint64 used = strtoull(plan, &end, 16);
	long key = strtol(end, &end, 10);
	const char *letters = end + 1;
	int r = SQLITE_OK;

	c->is_ordered = ordered;
	c->row = 0;
	c->n_filters++;
	l.scan.columns = l.columns = calloc(t->table->n_columns + 1, 1);
	if (!l.columns)
		return SQLITE_NOMEM;
	for (size_t i = 0; i < t->table->n_columns; i++)
		l.columns[i] = is_used(used, i);
	if (key >= 0)
		l.columns[key] = 1;
	for (int i = 0; i < argc && r == SQLITE_OK; i++)
		r = add_limit(&l, t->tables, letters[i], argv[i]);
	c->is_at_end = l.is_empty;
	if (r == SQLITE_OK && !l.is_empty)
		r = l.key && c->n_filters > 1 ? search_copy(c, &l, (size_t)key) : begin_scan(c, &l);
	free_limits(&l);
	return r;
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	return ((struct cursor *)base)->is_at_end;
}

static int get_column(sqlite3_vtab_cursor *base, sqlite3_context *x, int n)
{
	struct cursor *c = (struct cursor *)base;
	struct ky_cell cell;

	if (c->is_copied)
		ky_copy_cell(&c->copy, c->at, (size_t)n, &cell);
	else
		ky_scan_cell(c->scan, (size_t)n, &cell);
	switch (cell.type) {
	case KY_CELL_INT:
		sqlite3_result_int64(x, cell.i);
		break;
	case KY_CELL_REAL:
		sqlite3_result_double(x, cell.d);
		break;
	case KY_CELL_TEXT:
		sqlite3_result_text64(x, cell.text, cell.len, SQLITE_TRANSIENT, SQLITE_UTF8);
		break;
	default:
		break;
	}
	return SQLITE_OK;
}

static int get_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	struct cursor *c = (struct cursor *)base;

	*ret = c->is_copied ? (sqlite3_int64)c->copy.order[c->at] + 1 : c->row;
	return SQLITE_OK;
}

static const sqlite3_module module = {
	.iVersion = 0,
	.xCreate = connect_table,
	.xConnect = connect_table,
	.xBestIndex = best_index,
	.xDisconnect = disconnect_table,
	.xDestroy = disconnect_table,
	.xOpen = open_cursor,
	.xClose = close_cursor,
	.xFilter = filter_rows,
	.xNext = next_row,
	.xEof = is_at_end,
	.xColumn = get_column,
	.xRowid = get_rowid,
};

static int add_row(sqlite3_stmt *insert, const struct ky_table *t, size_t number)
{
	char *text = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING kymo(%llu)", t->name,
		(unsigned long long)number);

	if (!text)
		return SQLITE_NOMEM;
	sqlite3_bind_text(insert, 1, t->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(insert, 2, text, -1, sqlite3_free);
	sqlite3_step(insert);
	return sqlite3_reset(insert);
}

/* Adds the rows that CREATE VIRTUAL TABLE would add to the schema. */
static int add_rows(sqlite3 *db, const char *schema, const struct ky_tables *t)
{
	char *text = sqlite3_mprintf(
		"INSERT INTO %s.sqlite_master VALUES('table', ?1, ?1, 0, ?2)", schema);
	sqlite3_stmt *insert = NULL;
	int r = text ? sqlite3_prepare_v2(db, text, -1, &insert, NULL) : SQLITE_NOMEM;

	for (size_t i = 0; i < t->n && r == SQLITE_OK; i++)
		r = add_row(insert, &t->tables[i], i);
	sqlite3_finalize(insert);
	sqlite3_free(text);
	return r;
}

/* Lets SQLite connect the tables now: an authorizer that is set later may forbid it. */
static int connect_tables(sqlite3 *db, const char *schema, const struct ky_tables *t)
{
	int r = SQLITE_OK;

	for (size_t i = 0; i < t->n && r == SQLITE_OK; i++) {
		char *text = sqlite3_mprintf("SELECT 1 FROM %s.\"%w\"", schema, t->tables[i].name);
		sqlite3_stmt *st = NULL;

		r = text ? sqlite3_prepare_v2(db, text, -1, &st, NULL) : SQLITE_NOMEM;
		sqlite3_finalize(st);
		sqlite3_free(text);
	}
	return r;
}

/*
 * CREATE VIRTUAL TABLE reads the whole schema each time, so that thousands of tables take seconds.
 * Therefore all rows are added to the schema, and SQLite then reads it once.
 */
int ky_sql_add_tables(sqlite3 *db, const char *schema, const struct ky_tables *t)
{
	int is_defensive = 0, r = sqlite3_create_module(db, "kymo", &module, (void *)t);

	if (r != SQLITE_OK)
		return r;
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, -1, &is_defensive);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	r = sqlite3_exec(db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
	if (r == SQLITE_OK)
		r = add_rows(db, schema, t);
	if (r == SQLITE_OK)
		r = sqlite3_exec(db, "PRAGMA writable_schema = RESET", NULL, NULL, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, is_defensive, NULL);
	return r == SQLITE_OK ? connect_tables(db, schema, t) : r;
}
