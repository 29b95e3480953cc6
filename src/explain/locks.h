/* SPDX-License-Identifier: MIT */
/*
 * Holders of mutexes, and when: the holds that are open, and the newest closed ones of mutexes that
 * some thread had to wait for. Times come in ascending order.
 *
 * Processes may share a mutex, each at its own address. The trace does not say so. Two are taken
 * for one if they are at the same place of a page, waits for one end when the other is released,
 * and the two are not held at the same time.
 */
#ifndef EXPLAIN_LOCKS_H
#define EXPLAIN_LOCKS_H

#include "base/htab.h"
#include "base/vec.h"

#define KY_MAX_HOLDS 512 /* closed ones of a mutex */

struct ky_hold {
	int64_t from, to; /* to: INT64_MAX while it is open */
	uint32_t thread;
	uint32_t span; /* innermost when it began */
	uint64_t caller;
	uint32_t depth; /* the thread acquired it again so often: a recursive mutex */
	bool is_lent;	/* the thread waits for a condition meanwhile */
};

struct ky_mutex {
	struct ky_hnode node;
	uint64_t address;
	uint64_t process;
	bool is_contended;
	struct ky_hnode same_place; /* of mutexes at the same place of a page */
	struct ky_mutex *alias;	    /* perhaps the same mutex, in another process */
	uint32_t n_agree, n_differ; /* how often the alias did as if it were, and not */
	int64_t held_from, held_to; /* a hold that is to be compared with the alias's; or 0 */
	/* the newest hold that ended */
	struct {
		uint32_t thread;
		int64_t from, to;
	} last;
	KY_VEC(struct ky_hold) open;
	KY_VEC(struct ky_hold) closed; /* in order of their ends; only if it is contended */
};

struct ky_locks {
	struct ky_htab table;
	struct ky_htab by_place;
};

/* Finds or adds a mutex. Returns NULL without memory. */
struct ky_mutex *ky_locks_get(struct ky_locks *l, uint64_t process, uint64_t address);
/* Begins a hold; if the thread has the mutex already, one level more. Returns 0 or -ENOMEM. */
int ky_mutex_acquire(struct ky_mutex *m, const struct ky_hold *hold);
/*
 * Ends one level of the thread's hold. Returns 0, also if the thread does not hold the mutex, or
 * -ENOMEM.
 */
int ky_mutex_release(struct ky_mutex *m, uint32_t thread, int64_t ns);
/*
 * The thread begins to wait for a condition: until ky_mutex_take_back(), others may hold the mutex.
 * Returns 0, also if the thread does not hold it, or -ENOMEM.
 */
int ky_mutex_lend(struct ky_mutex *m, uint32_t thread, int64_t ns);
/* Continues a hold that was lent; does nothing if there is none. */
void ky_mutex_take_back(struct ky_mutex *m, uint32_t thread, int64_t ns);
/* Returns when the hold ended that this thread began at `from`, or ns if it has not. */
int64_t ky_mutex_end_of_hold(const struct ky_mutex *m, uint32_t thread, int64_t from, int64_t ns);
/* Returns whether other threads of the process held it in that time. */
bool ky_mutex_was_held(const struct ky_mutex *m, uint32_t waiter, int64_t from, int64_t to);
/* A thread begins to wait for the mutex: from now on, its holds are kept. */
void ky_locks_expect(struct ky_locks *l, struct ky_mutex *m, int64_t ns);
/*
 * Finds the mutex of another process that explains a wait, if no holder of this process does; or
 * NULL.
 */
const struct ky_mutex *ky_locks_find_alias(
	struct ky_locks *l, struct ky_mutex *m, int64_t from, int64_t to);
/* Forgets all holders, after events were lost. */
void ky_locks_forget(struct ky_locks *l);
void ky_locks_deinit(struct ky_locks *l);

#endif
