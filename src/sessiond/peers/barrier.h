/* SPDX-License-Identifier: MIT */
/*
 * A barrier completes an operation (op.h) when a set of peers has replied, without blocking the
 * event loop.
 *
 * A ticket represents one reply that a peer still has to send. It is a member of the peer's list of
 * tickets and, if somebody waits for the reply, of one barrier. The barrier completes when it has
 * no tickets left, or when it times out. All times are of the loop's clock.
 */
#ifndef SESSIOND_PEERS_BARRIER_H
#define SESSIOND_PEERS_BARRIER_H

#include "sessiond/model/op.h"
#include "sessiond/model/user.h"
#include "sessiond/peers/proc-state.h"
#include "svc/loop.h"

#define BARRIER_MAX_EXTENSIONS 50
/* How long a command waits for applications: with the rest of its work, not more than 100 ms. */
#define APP_ANSWER_NS (90 * KY_NS_PER_MS)
/* How long a command waits for a consumer that is at work: clients wait 30 s. */
#define CONSUMER_ANSWER_NS (25000 * KY_NS_PER_MS)

enum ticket_kind {
	TICKET_QUERY,  /* an application's EVENTS; key: number of the ring set, or QUERY_ALL */
	TICKET_ACK,    /* an application's ACK; key: cookie */
	TICKET_FLUSH,  /* a consumer's STATS; key: cookie */
	TICKET_ASK,    /* likewise, but not repeated when the consumer is restarted */
	TICKET_ROTATE, /* a consumer's ROTATED; key: cookie */
};

struct barrier {
	struct ky_list tickets;
	struct ky_loop *loop; /* NULL: not initialised */
	struct ky_timer timer;
	struct ky_timer charge; /* charges users for the time that others wait for them */
	struct ky_job passed;
	/*
	 * give_up_ns: when the silent peers have had timeout_ns since the last reply; deadline_ns:
	 * with all extensions
	 */
	uint64_t timeout_ns, deadline_ns, give_up_ns;
	uint64_t examined_ns; /* when checked_silent was set */
	bool armed;
	bool checked_silent; /* peers that have not replied were examined since the last reply */
	bool timed_out;	     /* some peers have not replied, or were not asked */
	struct op *op;
};

struct ticket {
	struct ky_list *peer;	 /* the peer's list, oldest first */
	struct ky_list node;	 /* in it */
	struct ky_list waiting;	 /* in barrier->tickets */
	struct barrier *barrier; /* NULL: nobody waits */
	enum ticket_kind kind;
	uint32_t key;
	/* of the peer, if it is an application whose state in /proc may be read; else 0 */
	pid_t pid;
	struct user *user; /* charged for the time that others wait for this peer; NULL: nobody */
	struct proc_run silent[PROC_RUNS]; /* when it was silent at first */
	bool late;			   /* a barrier has given up waiting for this reply */
	bool trusted; /* extend the timeout for this peer: it is one of our own daemons */
};

void barrier_init(struct barrier *b, struct ky_loop *loop, struct op *op);
/*
 * Arms the barrier. Completes its op, from a job or a timer: with 0, or -ETIMEDOUT if some peers
 * have not replied.
 *
 * The barrier times out when no reply has arrived for timeout_ns. It extends the timeout, to at
 * most BARRIER_MAX_EXTENSIONS times its length, while other peers still reply, and while the
 * listener's thread of a silent peer has waited for a CPU all the time. For trusted peers it
 * extends the timeout too, but drops the others first. After a short silence it stops waiting for
 * processes that are stopped, traced or frozen.
 *
 * All waiting for a user's peers, but for a first short time, is charged to that user's patience
 * (user.h). When that is used up, the barrier does not wait for these peers any longer. Nor does it
 * wait longer than that short time for a user's peer that still owes the reply for which an earlier
 * barrier waited in vain.
 */
void barrier_arm(struct barrier *b, uint64_t timeout_ns);
/* Detaches all tickets. The op is not done then. */
void barrier_deinit(struct barrier *b);

/*
 * Adds a reply that the peer has to send. barrier may be NULL. Returns NULL if allocation fails;
 * the barrier then does not wait for the reply, and completes as if the peer had not sent it.
 */
struct ticket *ticket_new(
	struct ky_list *peer, enum ticket_kind kind, uint32_t key, struct barrier *barrier);
/* Makes the barrier wait for the ticket, unless another one waits for it already. */
void ticket_await(struct ticket *t, struct barrier *barrier);
/* Returns the oldest such ticket of the peer, or NULL. */
struct ticket *ticket_find(const struct ky_list *peer, enum ticket_kind kind, uint32_t key);
/* Likewise the newest. The replies of one kind arrive in order, so it is the last one. */
struct ticket *ticket_find_last(const struct ky_list *peer, enum ticket_kind kind, uint32_t key);
/* Frees the ticket: its reply has arrived. NULL is allowed. */
void ticket_done(struct ticket *t);
/*
 * Takes the ticket from its barrier, which counts it as a timeout. The peer still has to send the
 * reply.
 */
void ticket_give_up(struct ticket *t);
/* Drops all tickets of a peer that disconnected. Barriers that waited only for it complete. */
void ticket_done_all(struct ky_list *peer);

#endif
