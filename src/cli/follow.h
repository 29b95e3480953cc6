/* SPDX-License-Identifier: MIT */
/*
 * Up to which time the streams of a trace that grows are complete. Packets of idle streams come
 * later than others: what was in the files for the length of the delay counts as complete.
 */
#ifndef CLI_FOLLOW_H
#define CLI_FOLLOW_H

#include <stddef.h>
#include <stdint.h>

#define CLI_FOLLOW_ROUNDS 64

struct cli_follow {
	uint64_t delay_ns;
	int64_t horizon_ns; /* all before it is complete; INT64_MIN: nothing */
	/* the end of the trace at some times, the oldest first */
	struct cli_follow_round {
		uint64_t seen_ns;
		int64_t end_ns;
	} rounds[CLI_FOLLOW_ROUNDS];
	size_t n;
};

/* delay_ns: how long after they were written events are printed. */
void cli_follow_init(struct cli_follow *f, uint64_t delay_ns);
/* Moves the horizon. now_ns: of the machine; end_ns: of the last packet in the files. */
void cli_follow_update(struct cli_follow *f, uint64_t now_ns, int64_t end_ns);
/* Returns how long to wait between updates. */
uint64_t cli_follow_interval_ns(const struct cli_follow *f);

#endif
