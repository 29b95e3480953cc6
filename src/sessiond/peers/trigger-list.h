/* SPDX-License-Identifier: MIT */
/*
 * The triggers of a session, and what is known of them: the data of triggers.h, trigger-amounts.h,
 * trigger-actions.h and firing.h.
 */
#ifndef SESSIOND_PEERS_TRIGGER_LIST_H
#define SESSIOND_PEERS_TRIGGER_LIST_H

#include "sessiond/model/trigger.h"
#include "sessiond/peers/barrier.h"
#include "sessiond/peers/kept.h"

#define TRIGGER_LOOK_NS (500 * KY_NS_PER_MS)

struct session;

struct trigger {
	struct ky_list node; /* in triggers->list */
	struct session *session;
	struct trigger_spec spec;
	bool is_met;	    /* by the last look */
	uint64_t discarded; /* when it fired last */
	uint64_t window_ns; /* begin of the time for which its rate is limited */
	uint64_t n_in_window;
	uint64_t n_fired, n_left_out; /* n_left_out: because of the rate */
	/* of a condition that applications decide: when it was seen to fire, not recorded yet */
	uint64_t unrecorded_ns;
	struct kept kept; /* if it keeps the newest snapshots only */
};

/* The steps of sessions that triggers begin, as steps.h says. */
struct trigger_ops {
	int (*start)(struct session *s, struct op *op);
	int (*stop)(struct session *s, struct op *op);
};

/* Of one session. */
struct triggers {
	struct session *session;
	const struct trigger_ops *ops;
	struct ky_list list;
	unsigned n;
	struct ky_timer timer;
	struct barrier answer; /* of the consumer */
	struct op answered;
	bool asked; /* the consumer: it was there */
	/* of the last look; looked_ns 0: there was none since the session started */
	uint64_t looked_ns, events, bytes;
	/* of conditions that applications decide (firing.h) */
	struct ky_timer firing;
	uint64_t firing_ns;	 /* of the last look at the words in the sets */
	unsigned n_copying;	 /* snapshots that copy the frozen sets */
	bool may_freeze;	 /* a thread that fired a trigger that was removed since */
	uint64_t n_missed_spans; /* spans that were not measured, because there were too many */
};

#endif
