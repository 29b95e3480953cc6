/* SPDX-License-Identifier: MIT */
/*
 * The event loop of a daemon: descriptors (epoll, level-triggered), timers, signals, and jobs. One
 * thread; everything is called from ky_loop_run().
 *
 * Watches, timers and jobs are embedded in the objects they serve and cost no allocation. Any
 * callback may remove any watch, timer or job, its own too, and free the object around it: a
 * removed one is never called again, not even when its event was already fetched. An object that
 * may be in use by a caller further up the stack frees itself from a job instead, which runs when
 * the stack is empty.
 */
#ifndef SVC_LOOP_H
#define SVC_LOOP_H

#include <sys/epoll.h>
#include <signal.h>

#include "base/list.h"

#define KY_LOOP_BATCH 256
#define KY_NS_PER_MS  1000000ull

struct ky_watch {
	struct ky_loop *loop; /* NULL while not added */
	int fd;		      /* borrowed */
	void (*fn)(struct ky_watch *w, uint32_t events);
};

struct ky_timer {
	struct ky_list node; /* in loop->timers, soonest first */
	uint64_t due_ns;
	void (*fn)(struct ky_timer *t);
};

struct ky_job {
	struct ky_list node;
	void (*fn)(struct ky_job *j);
};

/*
 * Replaces CLOCK_MONOTONIC, for tests. The loop never sleeps with such a clock: if no descriptor is
 * ready, it calls pass() with the time that it would have slept (UINT64_MAX: without limit).
 */
struct ky_loop_clock {
	uint64_t (*now_ns)(struct ky_loop_clock *c);
	void (*pass)(struct ky_loop_clock *c, uint64_t ns);
};

struct ky_loop {
	struct ky_loop_clock *clock; /* borrowed; NULL: CLOCK_MONOTONIC */
	int epoll_fd;
	bool stopped;
	struct ky_list timers, jobs, next_jobs;
	uint64_t n_turns;
	struct epoll_event batch[KY_LOOP_BATCH];
	int n_batch, next; /* events of the batch from `next` on are still to be called */
	struct ky_watch signals;
	void (*on_signal)(struct ky_loop *loop, int signo);
	/* Called after each turn that called something; may be NULL. */
	void (*on_turn)(struct ky_loop *loop);
};

int ky_loop_init(struct ky_loop *loop);
void ky_loop_deinit(struct ky_loop *loop);
/* Runs until ky_loop_stop(). Returns 0, or -errno when epoll fails. */
int ky_loop_run(struct ky_loop *loop);
void ky_loop_stop(struct ky_loop *loop);
/* Returns the time by the loop's clock. Time limits of the loop's users are measured by it. */
uint64_t ky_loop_time_ns(const struct ky_loop *loop);
/* Returns the time by CLOCK_MONOTONIC. */
uint64_t ky_loop_now_ns(void);

/* Blocks the signals of `set` and calls fn for each that comes. Children must unblock them:
 * ky_signals_reset(). */
int ky_loop_signals(
	struct ky_loop *loop, const sigset_t *set, void (*fn)(struct ky_loop *loop, int signo));
/* Unblocks all signals and gives them their default actions, between fork and exec. */
void ky_signals_reset(void);

/* Watches fd for EPOLLIN, EPOLLOUT, ...; 0 or -errno. */
int ky_watch_add(struct ky_loop *loop, struct ky_watch *w, int fd, uint32_t events,
	void (*fn)(struct ky_watch *w, uint32_t events));
int ky_watch_modify(struct ky_watch *w, uint32_t events);
/* Removes the watch; call it before closing the descriptor. Harmless when not added (zeroed). */
void ky_watch_remove(struct ky_watch *w);

/* Timers and jobs are initialised once; setting one that is set moves it; cancelling is always
 * allowed. */
void ky_timer_init(struct ky_timer *t, void (*fn)(struct ky_timer *t));
void ky_timer_set(struct ky_loop *loop, struct ky_timer *t, uint64_t delay_ns);
void ky_timer_cancel(struct ky_timer *t);
static inline bool ky_timer_is_set(const struct ky_timer *t)
{
	return !ky_list_empty(&t->node);
}
void ky_job_init(struct ky_job *j, void (*fn)(struct ky_job *j));
void ky_job_add(struct ky_loop *loop, struct ky_job *j);
/*
 * Calls the job at the end of this turn, or of the next turn if this turn's jobs already run. It is
 * for work that shares the loop with other work.
 */
void ky_job_add_next(struct ky_loop *loop, struct ky_job *j);
void ky_job_cancel(struct ky_job *j);
static inline bool ky_job_is_added(const struct ky_job *j)
{
	return !ky_list_empty(&j->node);
}

#endif
