/* SPDX-License-Identifier: MIT */
/*
 * Shows long output on a terminal through $PAGER, or less(1) if it is installed. For commands that
 * print lines without end. Call cli_pager_begin before threads start. Warnings, if they are for the
 * terminal too, go the same way: beside the pager, they would overwrite what it shows.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include "cli/cli.h"

/*
 * Starts the pager if stdout is a terminal, and lets it read our standard output. Returns its
 * process, or 0 without a pager.
 */
pid_t cli_pager_begin(struct cli *cli);
/* Ends the output and waits until the user closes the pager. */
void cli_pager_end(pid_t pager);

#endif
