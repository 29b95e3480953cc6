/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on the standard error output, for commands that read a trace for more than a
 * second while they print nothing on the terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the time of a clock that never goes back. */
uint64_t cli_now_ns(void);

struct cli_progress {
	bool is_wanted; /* stderr is a terminal, and nothing else writes to one meanwhile */
	bool is_shown;
	uint64_t begin_ns, next_ns;
	/* of cli_progress_watch */
	pthread_mutex_t lock; /* of drawing */
	uint64_t n_read;      /* bytes; atomic */
	uint64_t n_total;
};

struct ky_trace_reader;
struct ky_trace_reader_options;

void cli_progress_init(struct cli_progress *p);
/* Returns true if the bar is due: once a quarter of a second. */
bool cli_progress_is_due(const struct cli_progress *p);
/* Draws the bar: done of total. */
void cli_progress_draw(struct cli_progress *p, uint64_t done, uint64_t total);
/* Erases the bar, also before other text on the terminal. */
void cli_progress_erase(struct cli_progress *p);

/*
 * For commands that print nothing until they have read all: draws the bar whenever the reader reads
 * that is opened next, by *o. Returns p, for cli->progress: warnings erase that bar. The command
 * calls cli_progress_expect once the reader is open, and cli_progress_end before it prints.
 */
struct cli_progress *cli_progress_watch(struct cli_progress *p, struct ky_trace_reader_options *o);
void cli_progress_expect(struct cli_progress *p, const struct ky_trace_reader *r);
/* Erases the bar, and sets the pointer to it to NULL. Does nothing if that is NULL already. */
void cli_progress_end(struct cli_progress **progress);

#endif
