/* SPDX-License-Identifier: MIT */
/*
 * Waiting for peers without waiting: a barrier is passed when each peer that was asked something
 * has answered or gone, or when its time is up. A ticket is one answer that a peer owes; it hangs
 * in the peer's list and, when somebody waits for it, on one barrier.
 */
#ifndef SESSIOND_BARRIER_H
#define SESSIOND_BARRIER_H

#include "svc/loop.h"

#define BARRIER_PATIENCE 20

enum ticket_kind {
	TICKET_QUERY,  /* a program's EVENTS; key: number of the ring set, or QUERY_ALL */
	TICKET_ACK,    /* a program's ACK; key: cookie */
	TICKET_FLUSH,  /* a consumer's STATS; key: cookie */
	TICKET_ASK,    /* likewise; not worth repeating when the consumer has died */
	TICKET_ROTATE, /* a consumer's ROTATED; key: cookie */
};

struct barrier {
	struct ky_list tickets;
	struct ky_loop *loop;
	struct ky_timer timer;
	struct ky_job passed;
	uint64_t timeout_ns, deadline_ns, give_up_ns;
	bool armed;
	bool looked;	/* at who is silent, since the last answer */
	bool timed_out; /* not all that were asked have answered */
	void (*done)(struct barrier *b);
};

struct ticket {
	struct ky_list node;	 /* in the peer's list, oldest first */
	struct ky_list waiting;	 /* in barrier->tickets */
	struct barrier *barrier; /* NULL: nobody waits */
	enum ticket_kind kind;
	uint32_t key;
	pid_t pid;    /* of the peer, if it is a program whose state may be looked at; else 0 */
	bool patient; /* the peer is trusted to be at work while it is silent */
};

void barrier_init(struct barrier *b, struct ky_loop *loop, void (*done)(struct barrier *b));
/*
 * From now on it can be passed: `done` is called once, from a job or the timer, when no answer has come for timeout_ns:
 * a crowd that is busy answering, a program that others keep from the CPU, or a peer that deserves patience, is waited for,
 * up to BARRIER_PATIENCE times as long; others that are silent are not. After a short silence those that are stopped (by a
 * signal: state T) are waited for no more.
 */
void barrier_arm(struct barrier *b, uint64_t timeout_ns);
/* Forgets all it waits for; `done` is not called. */
void barrier_deinit(struct barrier *b);

/* The peer owes an answer; barrier may be NULL. NULL when there is no memory: then nobody waits for
 * it. */
struct ticket *ticket_new(
	struct ky_list *peer, enum ticket_kind kind, uint32_t key, struct barrier *barrier);
/* From now on the barrier waits for it, unless one does already. */
void ticket_await(struct ticket *t, struct barrier *barrier);
/* The oldest such ticket of the peer, or NULL. */
struct ticket *ticket_find(const struct ky_list *peer, enum ticket_kind kind, uint32_t key);
/* Answered: frees it. NULL is fine. */
void ticket_done(struct ticket *t);
/* The peer is gone: it owes nothing any more. */
void ticket_done_all(struct ky_list *peer);

#endif
