/* SPDX-License-Identifier: MIT */
/* Writes pages of traces (report/report.h) as files: for the commands report and record. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include "cli/cli.h"
#include "report/report.h"

#define CLI_PAGE_EVENTS 5000000 /* events that a page lists with their fields, by default */

/*
 * Writes a page. The file has another name until it is complete; another file than a page is not
 * replaced. Reports a failure; returns an exit code.
 */
int cli_page_write(struct cli *cli, const char *path, const struct ky_report_options *o,
	struct ky_report_summary *ret_summary);
/* Writes the page of a whole trace. Reports a failure; returns an exit code. */
int cli_page_of_trace(struct cli *cli, const char *path, const char *trace);

#endif
