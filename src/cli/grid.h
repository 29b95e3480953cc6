/* SPDX-License-Identifier: MIT */
/*
 * Results in rows and columns, on standard output: as a table, as comma-separated values, or as one
 * JSON object {"columns": [...], "rows": [[...], ...], "ok": true}.
 */
#ifndef CLI_GRID_H
#define CLI_GRID_H

#include "cli/cli.h"

#define CLI_GRID_WAITING 500 /* rows of a table that decide how wide its columns are */

enum cli_grid_form { CLI_GRID_TABLE, CLI_GRID_CSV, CLI_GRID_JSON };
enum cli_cell_kind { CLI_CELL_NULL, CLI_CELL_NUMBER, CLI_CELL_TEXT };

struct cli_grid {
	struct cli *cli; /* borrowed */
	enum cli_grid_form form;
	size_t n_columns, n_cells; /* n_cells: that came, with names */
	bool is_terminal;	   /* the result goes to a terminal */
	/* of a table */
	char **waiting; /* owned: cells that are not printed yet */
	bool *is_right; /* owned: of those: right-aligned */
	size_t n_waiting, n_waiting_bytes;
	size_t *width; /* owned: by column; NULL: still waiting */
	bool has_failed;
};

/* Begins a grid. Then come the names of its columns, then the cells of each row. */
void cli_grid_begin(struct cli_grid *g, struct cli *cli, size_t n_columns, enum cli_grid_form form);
void cli_grid_name(struct cli_grid *g, const char *name);
void cli_grid_cell(struct cli_grid *g, enum cli_cell_kind kind, const char *text, size_t len);
/* Ends and frees it. failure: NULL, or why rows are missing. Returns 0 or -ENOMEM. */
int cli_grid_end(struct cli_grid *g, const char *failure);

#endif
