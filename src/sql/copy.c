/* SPDX-License-Identifier: MIT */
#include "sql/copy.h"

#include <math.h>

static const struct ky_copied_cell *cell_of(const struct ky_copy *c, size_t row, size_t column)
{
	return &c->cells[row * c->n_columns + c->place[column]];
}

/* --- making it --- */

static void copy_cell(struct ky_copy *c, struct ky_copied_cell *to, const struct ky_cell *from)
{
	to->type = (uint8_t)from->type;
	to->len = 0;
	switch (from->type) {
	case KY_CELL_INT:
		to->i = from->i;
		break;
	case KY_CELL_REAL:
		/* Not-a-number is NULL in SQL, and would have no place in the order. */
		to->type = isnan(from->d) ? KY_CELL_NULL : KY_CELL_REAL;
		to->d = from->d;
		break;
	case KY_CELL_TEXT:
		to->len = (uint32_t)from->len;
		to->text = c->text.len;
		ky_buf_append(&c->text, from->text, from->len);
		break;
	default:
		to->i = 0;
	}
}

/* Notes what the text of a key may be for SQLite, which compares numbers with such text. */
static void note_text(struct ky_copy *c, const struct ky_cell *key)
{
	static const char digits[] = "0123456789";
	bool is_large = key->len >= sizeof("9223372036854775808") - 1 && *key->text != '0' &&
			strspn(key->text, digits) == key->len;

	if (is_large) /* no integer of SQL is equal to it */
		c->has_large_text = true;
	else if (key->len && strchr("0123456789+-. \t\n\v\f\r", *key->text))
		c->has_numeric_text = true;
}

static int copy_row(struct ky_copy *c, struct ky_scan *scan, const uint8_t *wanted, size_t n)
{
	struct ky_copied_cell *row = &c->cells[c->n_rows * c->n_columns];
	struct ky_cell cell;

	for (size_t i = 0; i < n; i++) {
		if (!wanted[i])
			continue;
		ky_scan_cell(scan, i, &cell);
		copy_cell(c, &row[c->place[i]], &cell);
		if (i == c->key && cell.type == KY_CELL_TEXT)
			note_text(c, &cell);
	}
	c->n_rows++;
	return c->text.error;
}

static int copy_rows(struct ky_copy *c, struct ky_scan *scan, const uint8_t *wanted, size_t n)
{
	size_t cap = 0;
	int r;

	while ((r = ky_scan_next(scan)) > 0) {
		if (c->n_rows == cap) {
			struct ky_copied_cell *more;

			cap = cap ? 2 * cap : 1024;
			more = reallocarray(c->cells, cap, c->n_columns * sizeof(*more));
			if (!more)
				return -ENOMEM;
			c->cells = more;
		}
		r = copy_row(c, scan, wanted, n);
		if (r < 0)
			return r;
	}
	return r;
}

/* --- its order --- */

/* Numbers come before text, as in SQLite. */
static int compare_text(const char *x, size_t x_len, const char *y, size_t y_len)
{
	int r = memcmp(x, y, KY_MIN(x_len, y_len));

	return r ? r : (x_len > y_len) - (x_len < y_len);
}

static long double number_of(const struct ky_copied_cell *c)
{
	return c->type == KY_CELL_INT ? (long double)c->i : (long double)c->d;
}

static int compare_cells(const struct ky_copied_cell *x, const struct ky_copied_cell *y,
	const char *xs, const char *ys)
{
	bool x_text = x->type == KY_CELL_TEXT, y_text = y->type == KY_CELL_TEXT;

	if (x_text != y_text)
		return x_text ? 1 : -1;
	if (x_text)
		return compare_text(xs, x->len, ys, y->len);
	if (x->type == KY_CELL_INT && y->type == KY_CELL_INT)
		return (x->i > y->i) - (x->i < y->i);
	return (number_of(x) > number_of(y)) - (number_of(x) < number_of(y));
}

static const char *text_of(const struct ky_copy *c, const struct ky_copied_cell *cell)
{
	return cell->type == KY_CELL_TEXT && c->text.data ? c->text.data + cell->text : "";
}

static int by_key(const void *a, const void *b, void *arg)
{
	const struct ky_copy *c = arg;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct ky_copied_cell *cx = cell_of(c, x, c->key), *cy = cell_of(c, y, c->key);
	int r = compare_cells(cx, cy, text_of(c, cx), text_of(c, cy));

	return r ? r : (x > y) - (x < y);
}

static int sort_rows(struct ky_copy *c)
{
	c->order = calloc(c->n_rows + 1, sizeof(*c->order));
	if (!c->order)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_rows; i++)
		if (cell_of(c, i, c->key)->type != KY_CELL_NULL)
			c->order[c->n_keyed++] = i;
	qsort_r(c->order, c->n_keyed, sizeof(*c->order), by_key, c);
	return 0;
}

int ky_copy_make(struct ky_copy *c, struct ky_scan *scan, const struct ky_table *table,
	const uint8_t *wanted, size_t key)
{
	int r;

	*c = (struct ky_copy){.key = key, .type = table->columns[key].type};
	c->place = calloc(table->n_columns + 1, sizeof(*c->place));
	if (!c->place)
		return -ENOMEM;
	for (size_t i = 0; i < table->n_columns; i++)
		if (wanted[i])
			c->place[i] = (uint32_t)c->n_columns++;
	r = copy_rows(c, scan, wanted, table->n_columns);
	return r ? r : sort_rows(c);
}

void ky_copy_deinit(struct ky_copy *c)
{
	ky_buf_deinit(&c->text);
	free(c->cells);
	free(c->place);
	free(c->order);
	*c = (struct ky_copy){0};
}

/* --- reading it --- */

static bool key_of(sqlite3_value *value, struct ky_copied_cell *ret, const char **ret_text)
{
	*ret_text = "";
	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		*ret = (struct ky_copied_cell){
			.type = KY_CELL_INT, .i = sqlite3_value_int64(value)};
		return true;
	case SQLITE_FLOAT:
		*ret = (struct ky_copied_cell){
			.type = KY_CELL_REAL, .d = sqlite3_value_double(value)};
		return true;
	case SQLITE_TEXT:
		*ret_text = (const char *)sqlite3_value_text(value);
		*ret = (struct ky_copied_cell){
			.type = KY_CELL_TEXT, .len = (uint32_t)sqlite3_value_bytes(value)};
		return *ret_text;
	default:
		return false;
	}
}

/*
 * SQLite may compare a number with text that looks like one, as numbers or as text: that depends on
 * both sides, of which only one is known here. Returns whether rows of another type may be equal.
 */
static bool may_convert(const struct ky_copy *c, sqlite3_value *value, sqlite3_value *number)
{
	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		return c->has_numeric_text;
	case SQLITE_FLOAT:
		return c->has_numeric_text || c->has_large_text;
	default:
		return c->type != KY_CELL_TEXT && sqlite3_value_type(number) != SQLITE_TEXT;
	}
}

/* The first row of the order whose key is not less than the value, or is greater. */
static size_t find_bound(
	const struct ky_copy *c, const struct ky_copied_cell *key, const char *text, bool greater)
{
	size_t lo = 0, hi = c->n_keyed;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct ky_copied_cell *cell = cell_of(c, c->order[mid], c->key);
		int r = compare_cells(cell, key, text_of(c, cell), text);

		if (greater ? r <= 0 : r < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int ky_copy_find(const struct ky_copy *c, sqlite3_value *value, size_t *ret_first, size_t *ret_end)
{
	bool has_type = c->type == KY_CELL_INT || c->type == KY_CELL_REAL;
	sqlite3_value *number = sqlite3_value_dup(value);
	struct ky_copied_cell key;
	const char *text;

	*ret_first = *ret_end = 0;
	if (!number)
		return -ENOMEM;
	sqlite3_value_numeric_type(number);
	if (!has_type && may_convert(c, value, number)) {
		*ret_end = c->n_keyed;
	} else if (key_of(has_type ? number : value, &key, &text)) {
		*ret_first = find_bound(c, &key, text, false);
		*ret_end = find_bound(c, &key, text, true);
	}
	sqlite3_value_free(number);
	return 0;
}

void ky_copy_cell(const struct ky_copy *c, size_t i, size_t column, struct ky_cell *ret)
{
	const struct ky_copied_cell *cell = cell_of(c, c->order[i], column);

	ret->type = (enum ky_cell_type)cell->type;
	ret->i = cell->i;
	ret->d = cell->d;
	ret->text = text_of(c, cell);
	ret->len = cell->len;
}
