/* SPDX-License-Identifier: MIT */
/*
 * Runs of a program on two sides, each summed up as `kymo stat` does: how often each event came,
 * and how long spans and latencies took. For diff.
 */
#ifndef CLI_RUNS_H
#define CLI_RUNS_H

#include "analysis/measure.h"
#include "cli/cli.h"

enum side { SIDE_BASE, SIDE_NEW, N_SIDES };

enum measure {
	MEASURE_COUNT,
	MEASURE_TOTAL,
	MEASURE_MEAN,
	MEASURE_MEDIAN,
	MEASURE_P90,
	MEASURE_P99,
	MEASURE_MAX,
	N_MEASURES,
};

enum series_kind { SERIES_SPAN, SERIES_ASYNC, SERIES_LATENCY, SERIES_EVENT };

/* The measures of one name in all runs. */
struct series {
	char *name; /* owned */
	enum series_kind kind;
	double *v[N_SIDES][N_MEASURES]; /* owned: by run; NAN if the run has no value */
};

struct runs {
	size_t n[N_SIDES];
	struct series *series; /* owned */
	size_t n_series;
	struct ky_htab places; /* of the series, by name */
	uint64_t n_lost
		[N_SIDES]; /* events, packets, damaged places and unreadable files of all runs */
	size_t n_with_losses[N_SIDES];
};

extern const char *const measure_names[N_MEASURES];

/*
 * Sums up the traces (or outputs of `kymo stat --json`) at the n paths, of which the first n_base
 * are the base. Reports a failure; returns an exit code. The caller calls runs_deinit in any case.
 */
int runs_read(struct runs *r, struct cli *cli, char **paths, size_t n, size_t n_base);
void runs_deinit(struct runs *r);
/* Copies the values of a side that are there, sorted; returns how many. to: n[side] of them. */
size_t runs_values(const struct runs *r, const struct series *s, enum side side,
	enum measure measure, double *to);

#endif
