/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on the standard error output, for commands that read a trace for more than a
 * second while they print nothing on the terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the time of a clock that never goes back. */
uint64_t cli_now_ns(void);

struct cli_progress {
	bool is_wanted; /* stderr is a terminal and stdout is none */
	bool is_shown;
	uint64_t begin_ns, next_ns;
};

void cli_progress_init(struct cli_progress *p);
/* Returns true if the bar is due: once a quarter of a second. */
bool cli_progress_is_due(const struct cli_progress *p);
/* Draws the bar: done of total. */
void cli_progress_draw(struct cli_progress *p, uint64_t done, uint64_t total);
/* Erases the bar, also before other text on the terminal. */
void cli_progress_erase(struct cli_progress *p);

#endif
