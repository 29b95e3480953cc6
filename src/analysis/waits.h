/* SPDX-License-Identifier: MIT */
/*
 * Waits for locks, and their holds, from the events of libkymo-pthread.so or LTTng-UST's. The time
 * of a wait belongs to those who hold the lock meanwhile. Conditions, barriers and futexes have
 * waits and no holder. A semaphore is held like a lock as long as only those post it who waited for
 * it.
 */
#ifndef ANALYSIS_WAITS_H
#define ANALYSIS_WAITS_H

#include "analysis/sites.h"
#include "base/htab.h"
#include "base/vec.h"

#define KY_WAITS_MAX 65536 /* rows; what further ones would have is counted in n_others */
/* A lock that nobody holds is acquired in less. */
#define KY_WAITS_LONG_NS 1000000

enum ky_wait_kind {
	KY_WAIT_MUTEX,
	KY_WAIT_RWLOCK,
	KY_WAIT_COND,
	KY_WAIT_SEM,
	KY_WAIT_BARRIER,
	KY_WAIT_FUTEX,
	KY_N_WAIT_KINDS,
};

/* Waits of one site for one lock, held at one site; or, without the site of a wait, its holds. */
struct ky_wait_row {
	struct ky_hnode node;
	bool is_hold;
	enum ky_wait_kind kind;
	uint32_t lock;	   /* the number of its text */
	uint32_t waits_at; /* of holds: 0 */
	uint32_t held_at;  /* 0: nobody is known to hold it */
	uint64_t n, total_ns, max_ns, n_open;
	/* the longest one */
	int64_t end_ns;
	uint64_t thread, holder;
};

struct ky_waits {
	struct ky_htab rows;
	struct ky_wait_row **by_total; /* owned: holds first, then waits, the most time first */
	size_t n_holds, n_waits;
	uint64_t n_others, n_gaps;
	/*
	 * Acquisitions that took KY_WAITS_LONG_NS or more in which no thread of the process is
	 * known to have held the lock: processes share it, or the thread got no processor. They
	 * have no row.
	 */
	uint64_t n_unknown, unknown_total_ns, unknown_max_ns;
	size_t n_classes; /* of events of locks, in the trace */
	struct ky_wait_class *classes;
	struct ky_htab locks, threads;
	int64_t end_ns;
};

/* Reads the events of q. Returns 0 or -ENOMEM; ky_waits_deinit in any case. */
int ky_waits_collect(struct ky_waits *w, const struct ky_query *q, const struct ky_sites *sites,
	const struct ky_trace_reader_options *options);
void ky_waits_deinit(struct ky_waits *w);

#endif
