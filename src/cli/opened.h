/* SPDX-License-Identifier: MIT */
/*
 * Traces that are opened by libkymo-reader's public interface, for the commands that make something
 * else of them: sql, export, diff, top.
 */
#ifndef CLI_OPENED_H
#define CLI_OPENED_H

#include "cli/select.h"
#include "tables/tables.h"

struct cli_opened {
	struct cli *cli;	    /* borrowed */
	struct kymo_reader *reader; /* owned */
	char **warned;		    /* owned: warnings that were printed, each only once */
	size_t n_warned;
};

#define _cleanup_opened_ __attribute__((cleanup(cli_opened_close)))

/*
 * Opens n traces or, without any, the most recent one. Reports a failure; returns an exit code. The
 * caller calls cli_opened_close in any case.
 */
int cli_opened_open(struct cli_opened *o, struct cli *cli, char **paths, size_t n);
void cli_opened_close(struct cli_opened *o);
/*
 * Finds the times that the selection stands for, and checks the rest of it. Reports what is wrong;
 * returns an exit code.
 */
int cli_opened_part(
	struct cli_opened *o, const struct cli_selection *s, struct ky_tables_part *ret_part);

#endif
