/* SPDX-License-Identifier: MIT */
#include "cli/grid.h"

#include <unistd.h>

#include "base/csv.h"
#include "reader/format.h"

/* Bytes of cells that wait: a hostile trace has cells of many megabytes. */
#define MAX_WAITING_BYTES (16u << 20)

/* --- comma-separated values --- */

/*
 * Prints a cell with its separator. An absent value is empty, an empty text is "". A terminal gets
 * no character that controls it.
 */
static void print_csv(struct cli_grid *g, enum cli_cell_kind kind, const char *text, size_t len)
{
	_cleanup_free_ char *copy = g->is_terminal && kind ? strndup(text, len) : NULL;
	struct ky_buf b = {0}, safe = {0};

	g->has_failed |= g->is_terminal && kind && !copy;
	if (copy)
		cli_escape(&safe, copy);
	if (kind != CLI_CELL_NULL && !g->is_terminal)
		ky_buf_put_csv(&b, text, len);
	else if (copy)
		ky_buf_put_csv(&b, safe.data ? safe.data : "", safe.len);
	ky_buf_append(&b, (g->n_cells + 1) % g->n_columns ? "," : "\n", 1);
	fwrite(b.data, 1, b.len, stdout);
	ky_buf_deinit(&safe);
	ky_buf_deinit(&b);
}

/* --- JSON --- */

static void print_json(struct cli_grid *g, enum cli_cell_kind kind, const char *text, size_t len)
{
	bool is_first = g->n_cells % g->n_columns == 0, is_name = g->n_cells < g->n_columns;
	bool is_last = (g->n_cells + 1) % g->n_columns == 0;
	struct ky_buf b = {0};

	if (is_first)
		ky_buf_puts(&b, is_name			     ? "{\"columns\": ["
				: g->n_cells == g->n_columns ? "\n["
							     : ",\n[");
	if (kind == CLI_CELL_TEXT)
		ky_format_json_string(&b, text, len);
	else
		ky_buf_append(&b, kind ? text : "null", kind ? len : 4);
	ky_buf_puts(&b, !is_last ? ", " : is_name ? "], \"rows\": [" : "]");
	fwrite(b.data, 1, b.len, g->cli->result);
	ky_buf_deinit(&b);
}

/* --- tables --- */

static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void print_padded(const struct cli_grid *g, size_t column, const char *text, bool is_right)
{
	size_t width = width_of(text),
	       pad = g->width[column] > width ? g->width[column] - width : 0;
	bool is_last = column + 1 == g->n_columns;

	printf("%*s%s%*s%s", is_right ? (int)pad : 0, "", text, is_right || is_last ? 0 : (int)pad,
		"", is_last ? "\n" : "  ");
}

/* Prints the rows that wait. Their widths hold for the rows that follow. */
static void print_waiting(struct cli_grid *g)
{
	g->width = calloc(g->n_columns, sizeof(*g->width));
	g->has_failed |= !g->width;
	for (size_t i = 0; i < g->n_waiting && g->width; i++)
		g->width[i % g->n_columns] = KY_MAX(
			g->width[i % g->n_columns], width_of(g->waiting[i]));
	/* A name is on the side of its column's values. */
	for (size_t i = 0; i < g->n_columns && g->n_waiting > g->n_columns; i++)
		g->is_right[i] = g->is_right[i + g->n_columns];
	for (size_t i = 0; i < g->n_waiting; i++) {
		if (g->width) {
			fputs(i < g->n_columns ? cli_style(g->cli, CLI_BOLD) : "", stdout);
			print_padded(g, i % g->n_columns, g->waiting[i], g->is_right[i]);
			fputs(i < g->n_columns ? cli_style(g->cli, CLI_PLAIN) : "", stdout);
		}
		free(g->waiting[i]);
	}
	g->n_waiting = 0;
}

static void print_cell(struct cli_grid *g, enum cli_cell_kind kind, const char *text, size_t len)
{
	_cleanup_free_ char *copy = strndup(kind ? text : "", kind ? len : 0);
	struct ky_buf safe = {0};

	if (copy)
		cli_escape(&safe, copy);
	if (!copy || safe.error || !g->waiting || !g->is_right) {
		g->has_failed = true;
		ky_buf_deinit(&safe);
		return;
	}
	if (g->width) {
		print_padded(g, g->n_cells % g->n_columns, safe.data ? safe.data : "",
			kind == CLI_CELL_NUMBER);
		ky_buf_deinit(&safe);
		return;
	}
	g->waiting[g->n_waiting] = safe.data ? safe.data : calloc(1, 1);
	g->is_right[g->n_waiting] = kind == CLI_CELL_NUMBER;
	g->n_waiting_bytes += safe.len;
	if (g->waiting[g->n_waiting])
		g->n_waiting++;
	else
		g->has_failed = true;
	if (g->n_waiting == (CLI_GRID_WAITING + 1) * g->n_columns ||
		(g->n_waiting_bytes >= MAX_WAITING_BYTES && g->n_waiting % g->n_columns == 0))
		print_waiting(g);
}

/* --- grids --- */

void cli_grid_begin(struct cli_grid *g, struct cli *cli, size_t n_columns, enum cli_grid_form form)
{
	size_t n = (CLI_GRID_WAITING + 1) * n_columns;

	*g = (struct cli_grid){.cli = cli,
		.form = form,
		.n_columns = n_columns,
		.is_terminal = isatty(STDOUT_FILENO)};
	if (form == CLI_GRID_JSON)
		cli->printed = true;
	if (form != CLI_GRID_TABLE)
		return;
	g->waiting = calloc(n, sizeof(char *));
	g->is_right = calloc(n, sizeof(*g->is_right));
	g->has_failed = !g->waiting || !g->is_right;
}

void cli_grid_cell(struct cli_grid *g, enum cli_cell_kind kind, const char *text, size_t len)
{
	if (!text)
		kind = CLI_CELL_NULL;
	if (g->form == CLI_GRID_CSV)
		print_csv(g, kind, text, len);
	else if (g->form == CLI_GRID_JSON)
		print_json(g, kind, text, len);
	else
		print_cell(g, kind, text, len);
	g->n_cells++;
}

void cli_grid_name(struct cli_grid *g, const char *name)
{
	cli_grid_cell(g, CLI_CELL_TEXT, name, strlen(name));
}

int cli_grid_end(struct cli_grid *g, const char *failure)
{
	struct ky_buf b = {0};

	if (g->form == CLI_GRID_TABLE && !g->width)
		print_waiting(g);
	if (g->form == CLI_GRID_JSON) {
		ky_buf_puts(&b, failure ? "], \"ok\": false, \"code\": \"failed\", \"error\": "
					: "], \"ok\": true}\n");
		if (failure) {
			ky_format_json_string(&b, failure, strlen(failure));
			ky_buf_puts(&b, "}\n");
		}
		fwrite(b.data, 1, b.len, g->cli->result);
		ky_buf_deinit(&b);
	}
	free(g->waiting);
	free(g->is_right);
	free(g->width);
	return g->has_failed ? -ENOMEM : 0;
}
