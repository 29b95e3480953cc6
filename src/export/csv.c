/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/csv.h"
#include "export/export.h"
#include "export/out.h"

#define MAX_NAME 200 /* bytes of a file's name, without its ending */

static void put_cell(struct ky_buf *b, const struct ky_cell *c)
{
	switch (c->type) {
	case KY_CELL_INT:
		ky_buf_printf(b, "%" PRId64, c->i);
		return;
	case KY_CELL_REAL:
		ky_buf_printf(b, "%.17g", c->d);
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

/* Writes a table. Without a row there is no file, unless it was asked for by name. */
static int write_table(const struct ky_tables *t, const struct ky_table *table, const char *path,
	struct ky_out_room *room, bool is_asked)
{
	const struct ky_scan_limits all = KY_SCAN_ALL;
	struct ky_scan *scan = NULL;
	struct ky_out out;
	int r = ky_scan_open(&scan, t, table, &all), more = r ? 0 : ky_scan_next(scan), e;

	if (r || (!more && !is_asked)) {
		ky_scan_close(scan);
		return r;
	}
	r = ky_out_open(&out, path, room);
	if (!r)
		put_names(&out.buf, table);
	for (; more > 0 && !r; more = r ? 0 : ky_scan_next(scan)) {
		put_row(&out.buf, scan, table);
		r = ky_out_flush(&out);
	}
	e = ky_out_close(&out, !r && more >= 0);
	ky_scan_close(scan);
	return r ? r : more < 0 ? more : e;
}

/* "DIR/NAME.csv", with '_' for what file names should not have; different for each table. */
static char *make_path(const char *dir, const struct ky_tables *t, size_t table)
{
	const char *name = t->tables[table].name;
	size_t len = KY_MIN(strlen(name), (size_t)MAX_NAME);
	char *path, *p;

	if (asprintf(&path, "%s/%.*s%s.csv", dir, (int)len, name, "") < 0)
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

static int write_tables(const struct ky_tables *t, const char *dir, struct ky_out_room *room)
{
	char **paths = calloc(t->n + 1, sizeof(char *));
	int r = paths ? 0 : -ENOMEM;

	if (!r && mkdir(dir, 0777) < 0 && errno != EEXIST)
		r = -errno;
	for (size_t i = 0; i < t->n && !r; i++) {
		paths[i] = make_unique_path(paths, dir, t, i);
		if (!paths[i])
			r = -ENOMEM;
		else if (t->tables[i].kind != KY_TABLE_EVENTS)
			r = write_table(t, &t->tables[i], paths[i], room, false);
	}
	for (size_t i = 0; paths && i < t->n; i++)
		free(paths[i]);
	free(paths);
	return r;
}

/* Returns the table of the one name of events that is selected; NULL: there are several. */
static const struct ky_table *find_only(const struct ky_tables *t)
{
	const struct ky_table *found = NULL;

	for (size_t i = 0; i < t->n; i++) {
		if (t->tables[i].kind != KY_TABLE_CLASS)
			continue;
		if (found)
			return NULL;
		found = &t->tables[i];
	}
	return found;
}

int ky_export_csv(const struct ky_tables *t, const char *path, char why[KY_EXPORT_WHY])
{
	const struct ky_table *only = t->part.events ? find_only(t) : NULL;
	struct ky_out_room room = ky_out_room(t->n_bytes);
	char left_out[KY_TABLES_TEXT];

	why[0] = '\0';
	if (only)
		return write_table(t, only, path, &room, true);
	if (ky_tables_left_out(t, left_out)) {
		snprintf(why, KY_EXPORT_WHY, "%s: select some with -e, or use another format",
			left_out);
		return -E2BIG;
	}
	if (strcmp(path, "-"))
		return write_tables(t, path, &room);
	snprintf(why, KY_EXPORT_WHY,
		"each name of events is a file of its own: name a directory, or one event with -e");
	return -EINVAL;
}
