/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <strings.h>

#include "base/csv.h"
#include "base/text.h"
#include "export/export.h"
#include "export/out.h"

#define MAX_NAME 200 /* bytes of a file's name, without its ending */

static void put_cell(struct ky_buf *b, const struct ky_cell *c)
{
	char real[KY_REAL_TEXT];

	switch (c->type) {
	case KY_CELL_INT:
		ky_buf_printf(b, "%" PRId64, c->i);
		return;
	case KY_CELL_REAL:
		ky_buf_append(b, real, ky_format_real(real, c->d, false));
		return;
	case KY_CELL_TEXT:
		ky_buf_put_csv(b, c->text, c->len);
		return;
	default:
		return;
	}
}

static void put_names(struct ky_buf *b, const struct ky_table *t)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		ky_buf_append(b, ",", i > 0);
		ky_buf_put_csv(b, t->columns[i].name, strlen(t->columns[i].name));
	}
	ky_buf_append(b, "\n", 1);
}

static void put_row(struct ky_buf *b, struct ky_scan *scan, const struct ky_table *t)
{
	struct ky_cell cell;

	for (size_t i = 0; i < t->n_columns; i++) {
		ky_buf_append(b, ",", i > 0);
		ky_scan_cell(scan, i, &cell);
		put_cell(b, &cell);
	}
	ky_buf_append(b, "\n", 1);
}

/* A file for each table. */
struct csv {
	const struct ky_tables *tables;
	char **paths; /* owned, by table */
	struct ky_out_room room;
	bool is_asked; /* by name: there is a file even without a row */
};

/* The file of a table, once there is a row for it. */
struct csv_file {
	struct ky_out out;
	bool is_open;
};

static int open_file(struct csv *c, struct csv_file *f, size_t table)
{
	int r = ky_out_open(&f->out, c->paths[table], &c->room);

	f->is_open = true;
	if (!r)
		put_names(&f->out.buf, &c->tables->tables[table]);
	return r;
}

/* Writes the rows of a scan of the tables from number `first` on. */
static int write_rows(struct csv *c, struct ky_scan *scan, struct csv_file *files, size_t first)
{
	int r = 0, more = 0;

	while (!r && (more = ky_scan_next(scan)) > 0) {
		size_t table = ky_scan_table(scan);
		struct csv_file *f = &files[table - first];

		if (!f->is_open)
			r = open_file(c, f, table);
		if (r)
			break;
		put_row(&f->out.buf, scan, &c->tables->tables[table]);
		r = ky_out_flush(&f->out);
	}
	return r ? r : more;
}

/* Writes the tables that are read together, from number `first` on. *ret_n: how many. */
static int write_some(struct csv *c, size_t first, size_t *ret_n)
{
	struct ky_scan *scan = NULL;
	struct csv_file *files;
	int r = ky_scan_open_some(&scan, c->tables, first, ret_n), e;

	if (r)
		return r;
	files = calloc(*ret_n, sizeof(*files));
	r = files ? write_rows(c, scan, files, first) : -ENOMEM;
	if (!r && c->is_asked && !files[0].is_open)
		r = open_file(c, &files[0], first);
	for (size_t i = 0; files && i < *ret_n; i++) {
		e = files[i].is_open ? ky_out_close(&files[i].out, !r) : 0;
		r = r ? r : e;
	}
	free(files);
	ky_scan_close(scan);
	return r;
}

/* "DIR/NAME.csv", with '_' for what file names should not have; different for each table. */
static char *make_path(const char *dir, const struct ky_tables *t, size_t table)
{
	const char *name = t->tables[table].name;
	size_t len = KY_MIN(strlen(name), (size_t)MAX_NAME);
	char *path, *p;

	if (asprintf(&path, "%s/%.*s.csv", dir, (int)len, name) < 0)
		return NULL;
	for (p = path + strlen(dir) + 1; *p; p++)
		if (*p == '/' || (unsigned char)*p < ' ' || *p == 0x7f)
			*p = '_';
	if (path[strlen(dir) + 1] == '.')
		path[strlen(dir) + 1] = '_';
	return path;
}

/* Several tables may have the same file name after that: further ones get a number. */
static bool is_taken(char **paths, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (paths[i] && !strcmp(paths[i], path))
			return true;
	return false;
}

static char *make_unique_path(
	char **paths, const char *dir, const struct ky_tables *t, size_t table)
{
	char *path = make_path(dir, t, table), *numbered;

	/* A table may also be called as another one is with its number. */
	while (path && is_taken(paths, table, path)) {
		path[strlen(path) - strlen(".csv")] = '\0';
		if (asprintf(&numbered, "%s-%zu.csv", path, table) < 0)
			numbered = NULL;
		free(path);
		path = numbered;
	}
	return path;
}

static int write_tables(struct csv *c, const char *dir)
{
	const struct ky_tables *t = c->tables;
	int r = 0;

	for (size_t i = 0; i < t->n && !r; i++) {
		c->paths[i] = make_unique_path(c->paths, dir, t, i);
		r = c->paths[i] ? 0 : -ENOMEM;
	}
	for (size_t i = 0, n = 1; i < t->n && !r; i += n, n = 1)
		if (t->tables[i].kind != KY_TABLE_EVENTS)
			r = write_some(c, i, &n);
	return r;
}

/* Writes a directory with the tables, all of them or none. */
static int write_all(struct csv *c, const char *path, char why[KY_EXPORT_WHY])
{
	char *part;
	int r = ky_out_dir_open(&part, path, why);

	return r ? r : ky_out_dir_close(part, path, write_tables(c, part));
}

/* Writes the one name of events that is selected. */
static int write_only(struct csv *c, size_t table, const char *path)
{
	size_t n;

	c->is_asked = true;
	c->paths[table] = strdup(path);
	return c->paths[table] ? write_some(c, table, &n) : -ENOMEM;
}

/* Returns the table of the one name of events that is selected; KY_NO_TABLE: there are several. */
static size_t find_only(const struct ky_tables *t)
{
	size_t found = KY_NO_TABLE;

	for (size_t i = 0; i < t->n; i++) {
		if (t->tables[i].kind != KY_TABLE_CLASS)
			continue;
		if (found != KY_NO_TABLE)
			return KY_NO_TABLE;
		found = i;
	}
	return found;
}

int ky_export_csv(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	size_t only = t->part.events ? find_only(t) : KY_NO_TABLE;
	struct csv c = {.tables = t, .room = ky_out_room(t->n_bytes)};
	char left_out[KY_TABLES_TEXT];
	int r;

	why[0] = '\0';
	if (only == KY_NO_TABLE && ky_tables_left_out(t, left_out)) {
		snprintf(why, KY_EXPORT_WHY, "%s: select some with -e, or use another format",
			left_out);
		return -E2BIG;
	}
	if (only == KY_NO_TABLE && !strcmp(path, "-")) {
		snprintf(why, KY_EXPORT_WHY,
			"each name of events is a file of its own: name a directory, or one event with -e");
		return -EINVAL;
	}
	c.paths = calloc(t->n, sizeof(*c.paths));
	r = !c.paths		  ? -ENOMEM
	    : only == KY_NO_TABLE ? write_all(&c, path, why)
				  : write_only(&c, only, path);
	for (size_t i = 0; c.paths && i < t->n; i++)
		free(c.paths[i]);
	free(c.paths);
	return r;
}
