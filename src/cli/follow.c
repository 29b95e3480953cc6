/* SPDX-License-Identifier: MIT */
#include "cli/follow.h"

#include <string.h>

#include "base/util.h"

#define INTERVAL_MAX UINT64_C(250000000)
#define INTERVAL_MIN UINT64_C(10000000)

void cli_follow_init(struct cli_follow *f, uint64_t delay_ns)
{
	*f = (struct cli_follow){.delay_ns = delay_ns, .horizon_ns = INT64_MIN};
}

void cli_follow_update(struct cli_follow *f, uint64_t now_ns, int64_t end_ns)
{
	size_t n_old = 0;

	if (f->n < CLI_FOLLOW_ROUNDS && (!f->n || f->rounds[f->n - 1].end_ns < end_ns) &&
		(f->n || f->horizon_ns <= end_ns))
		f->rounds[f->n++] = (struct cli_follow_round){now_ns, end_ns};
	while (n_old < f->n && f->rounds[n_old].seen_ns + f->delay_ns <= now_ns) {
		/* The last packet's end is the time of its last event. */
		f->horizon_ns = f->rounds[n_old].end_ns + 1;
		n_old++;
	}
	f->n -= n_old;
	memmove(f->rounds, f->rounds + n_old, f->n * sizeof(*f->rounds));
}

uint64_t cli_follow_interval_ns(const struct cli_follow *f)
{
	uint64_t ns = KY_MAX(f->delay_ns / (CLI_FOLLOW_ROUNDS / 2), INTERVAL_MIN);

	return KY_MIN(ns, INTERVAL_MAX);
}
