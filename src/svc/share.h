/* SPDX-License-Identifier: MIT */
/*
 * Shares the time of the loop among those who cause work in it, for example users: however many
 * messages one of them sends, and whatever they cost, the others' turn comes soon.
 *
 * Each of them has a share, with jobs (loop.h) that wait in it. In each turn of the loop, the jobs
 * of all shares together get KY_SHARE_SLICE_NS of CPU time. Among the shares, the one that has had
 * the least time so far is next. A job that takes longer asks ky_share_is_over(), and adds itself
 * again.
 *
 * Shares that rest leave the CPU to others after each slice while others need it. So the precedence
 * of a daemon (precedence.h) gives this work no more than a fifth of a CPU.
 */
#ifndef SVC_SHARE_H
#define SVC_SHARE_H

#include "svc/loop.h"

#define KY_SHARE_SLICE_NS (1 * KY_NS_PER_MS)
#define KY_SHARE_REST_NS  (4 * KY_NS_PER_MS)

struct ky_shares {
	struct ky_loop *loop;
	struct ky_list waiting; /* struct ky_share: those with jobs, and some without */
	struct ky_job work;
	bool rests;
	struct ky_timer rest;
	uint64_t wanted_until_ns; /* others need the CPU until then */
	long n_preempted;
	struct ky_share *running; /* NULL: none, or it has ended meanwhile */
	uint64_t end_ns;	  /* CPU time at which the slice of this turn is over */
	uint64_t floor_ns;	  /* the time that the share had that was served last */
};

struct ky_share {
	struct ky_shares *of;
	struct ky_list node; /* in shares->waiting */
	struct ky_list jobs;
	uint64_t had_ns; /* CPU time; while a share has no job, others do not get ahead of it */
};

/* loop: borrowed. No share may exist when the shares end, and no job of them may wait. */
void ky_shares_init(struct ky_shares *s, struct ky_loop *loop);
void ky_share_init(struct ky_share *s, struct ky_shares *of);
/* No job may wait in it. */
void ky_share_deinit(struct ky_share *s);
/*
 * Adds a job, as ky_job_add() does: at the end, or as the next one of this share. Without a share
 * (NULL) the job runs in this turn. ky_job_cancel() removes it.
 */
void ky_share_add(struct ky_share *s, struct ky_loop *loop, struct ky_job *j);
void ky_share_add_first(struct ky_share *s, struct ky_loop *loop, struct ky_job *j);
/*
 * Returns whether the slice of this turn is over: the job that runs should add itself again. By a
 * clock of tests, work takes no time.
 */
bool ky_share_is_over(const struct ky_share *s);

#endif
