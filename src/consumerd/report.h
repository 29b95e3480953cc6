/* SPDX-License-Identifier: MIT */
/* Reports to the session daemon: counts, failures, damage. */
#ifndef CONSUMERD_REPORT_H
#define CONSUMERD_REPORT_H

#include "consumerd/state.h"

struct stream_set;

/* Sends an encoded message, if a daemon is connected. */
void report_send(struct consumerd *c, const void *buf, int len);
/* Sends all counts. cookie: of the request that this answers; 0: none. */
void report_stats(struct consumerd *c, uint32_t cookie);
/* Sets the failure that the next reports contain. 0: none. */
KY_PRINTF(3, 4) void report_set_status(struct consumerd *c, int status, const char *fmt, ...);
/* Finds the first present failure, and reports it if it changed. */
void report_faults(struct consumerd *c);
/* Reports, once, a set that a program has damaged. */
void report_damage(struct consumerd *c, struct stream_set *set);
/* Reports the marker of clocks that the set's source has found. */
void report_marker(struct consumerd *c, struct stream_set *set);
/* Reports that rings of the set have grown, at most once a second. */
void report_growth(struct consumerd *c, struct stream_set *set, uint64_t now_ns);
/* Damage will be reported again: to a successor of the daemon. */
void report_damage_again(struct consumerd *c);

#endif
