/* SPDX-License-Identifier: MIT */
/*
 * Supervises a consumer process: starts it, sends it orders, and starts a session's own consumer
 * again with the same ring sets if it dies. The rings outlive it, so nothing is lost as long as
 * they have room meanwhile. The daemon takes over a consumer that has outlived a session daemon as
 * it is. A snapshot's consumer gets the ring sets of its session too, and has one try.
 */
#ifndef SESSIOND_PEERS_CONSUMER_H
#define SESSIOND_PEERS_CONSUMER_H

#include <sys/types.h>

#include "abi/resume.h"
#include "base/buf.h"
#include "proto/consumer.h"
#include "sessiond/model/counts.h"
#include "sessiond/peers/barrier.h"
#include "svc/msg-conn.h"

struct session;
struct channel;
struct kernel_set;
struct ring_set;

struct consumer;

/* Callbacks of its owner, from the loop. */
struct consumer_ops {
	/* It can begin, or not: status is -errno, message says why. Once. */
	void (*ready)(struct consumer *c, int status, const char *message);
	/* message: why it cannot write; "": it can again. */
	void (*trouble)(struct consumer *c, const char *message);
	/*
	 * A predecessor's consumer has handed over all that it has. memory: the contents of the
	 * session's memory.
	 */
	void (*adopted)(struct consumer *c, const struct ky_resume_session *memory);
	/* It was to end, and does not get on with that: once for each QUIT. It goes on trying. */
	void (*stuck)(struct consumer *c);
	/* Its process has ended: in good order, or giving_up as it failed too often. */
	void (*ended)(struct consumer *c, bool giving_up);
};

struct consumer {
	struct session *session;
	const struct consumer_ops *ops;
	const char *output; /* borrowed; "": nothing is written */
	bool snapshot;	    /* of a snapshot */
	pid_t pid;	    /* our child; 0: none */
	/*
	 * of a predecessor's that is to call: its child, 0: none; the number of the memory's inode
	 */
	pid_t awaited;
	uint64_t memory_file;
	struct ky_msg_conn conn;
	bool connected;	 /* conn is open; the consumer has ended when no process is left either */
	bool answered;	 /* this process has answered INIT */
	bool ready;	 /* has answered INIT once, whichever process it was */
	int memory_fd;	 /* memory that outlives its processes; -1: not made yet */
	uint64_t n_sets; /* in that memory: ring sets that this process knows, or is sent */
	uint32_t quit_cookie;	/* of QUIT; 0: it is not to end */
	uint32_t rotate_cookie; /* of ROTATE that was not answered; 0: none */
	uint64_t rotate_chunk;
	struct op *rotated;	    /* done when it is */
	const char *rotate_archive; /* borrowed */
	bool quit_answered;
	bool quit_given_up;  /* stuck() was called */
	uint64_t quit_ns;    /* when it was asked to end */
	unsigned n_failures; /* deaths in a row */
	uint64_t rest_ms;    /* for how long its process waits before it begins */
	uint64_t started_ns;
	struct ky_timer restart;
	pid_t process; /* the present process, also one that a predecessor of the daemon started */
	int pidfd;     /* owned: of a predecessor's process that was taken over; or -1 */
	struct ky_watch exit;  /* of that process */
	uint64_t asked_ns;     /* it owes answers since then; 0: none */
	struct ky_timer watch; /* checks that it works on them (consumer-health.c) */
	bool seemed_stuck;     /* at the last look */
	struct ky_list tickets;
	struct event_counts counts;  /* last STATS, with those of sets that were retired */
	struct event_counts retired; /* of them: what STATS does not have any more */
	/* the most events that were lost: a new consumer knows fewer for a moment */
	uint64_t n_lost;
	/* when counts of lost events rose last; 0: not since this daemon has known them */
	uint64_t lost_ns;
	bool counted; /* STATS has arrived */
	struct ky_cons_bounds bounds;
	/* chunks that were removed for them, what was in them; bytes of the trace */
	uint64_t expired_chunks, expired_events, expired_bytes, disk_bytes;
	uint32_t fullest; /* thousandths of a buffer that were full at any look, at most */
	/* of those events: recorded in the present chunk, the next one; by parity */
	uint64_t retired_kept[2];
};

/* output, ops: borrowed. Starts no process: consumer_spawn() does. */
void consumer_init(
	struct consumer *c, struct session *s, const char *output, const struct consumer_ops *ops);
/* Kills what is left and forgets it. */
void consumer_deinit(struct consumer *c);
/* Spawns the process; ready() is called with its answer. Returns 0 or -errno. */
int consumer_spawn(struct consumer *c);
/* Takes over a predecessor's process, which has called: takes fd. adopted() follows. */
void consumer_adopt(struct consumer *c, int fd);
void consumer_add_set(struct consumer *c, const struct ring_set *set);
/* A consumer that drains kernel buffers gets precedence over ordinary processes. */
void consumer_add_kernel_set(struct consumer *c, const struct kernel_set *set);
/*
 * Makes the consumer write the set out and forget it, because the set's process has exited. Then
 * the set is freed.
 */
void consumer_retire(struct consumer *c, const struct ring_set *set);
/* Set `number` has these last counts, of which so many events were recorded in the chunk. */
void consumer_add_retired(
	struct consumer *c, const struct event_counts *counts, uint64_t chunk, uint64_t kept);
/* The chunk has become an archive; or, cleared, was removed. */
void consumer_chunk_ended(struct consumer *c, uint64_t chunk, bool cleared);
/* Sends the channel's timers after a change. */
void consumer_send_timers(struct consumer *c, const struct channel *channel);
/* Limits the trace on disk. */
void consumer_set_bounds(struct consumer *c, const struct ky_cons_bounds *bounds);
/*
 * Makes the consumer write the contents of the session's rings, and exit. If max_size is not 0, it
 * writes at most max_size bytes. reason: for the metadata; or "". copied, if there is one, waits
 * until the consumer has copied the rings.
 */
void consumer_snapshot(
	struct consumer *c, uint64_t max_size, const char *reason, struct barrier *copied);
/* Reads the session's memory. False if there is none. consumer-output.c */
bool consumer_read_memory(const struct consumer *c, struct ky_resume_session *ret_memory);
/* Writes everything out; b is passed with its STATS. */
void consumer_flush(struct consumer *c, struct barrier *b);
/* Asks for counts. */
void consumer_ask(struct consumer *c, struct barrier *b);
/*
 * Begins the chunk, after archiving the present one or ("") throwing it away. op is done then, with
 * 0, -ENODATA if there is nothing to archive, or another -errno. b waits for that. Only one
 * rotation runs at a time. Borrows archive until then.
 */
void consumer_rotate(
	struct consumer *c, uint64_t chunk, const char *archive, struct op *op, struct barrier *b);
/* Ends it; ended() follows. */
void consumer_quit(struct consumer *c);
/* Handles SIGCHLD: checks whether the process has exited. */
void consumer_reap(struct consumer *c);
/* Reaps processes that were killed when their consumer was freed. */
void consumers_reap_abandoned(void);

/*
 * Health of the consumer (consumer-health.c). A consumer that is stopped by a signal, or waits for
 * a disk that does not answer, reports nothing itself. It leaves the times of its steps in the
 * session's memory (abi/resume.h). The daemon reads them when it is asked, or when it waits for the
 * consumer's answer.
 */
/*
 * Returns for how many nanoseconds the consumer has done nothing although it should; 0 if it is at
 * work or idle.
 */
uint64_t consumer_silence_ns(const struct consumer *c);
/*
 * Returns whether commands should stop waiting for it: at once if it is stopped, else after some
 * seconds; later if it runs, or waits for a CPU.
 */
bool consumer_is_stuck(const struct consumer *c);
/*
 * Appends its state, the duration and the remedy: "its consumer (pid 7) has been stopped by a
 * signal for 3 s: ...".
 */
void consumer_put_silence(const struct consumer *c, struct ky_buf *to);

/* --- between consumer.c and consumer-replies.c --- */

/* Handles a message of the consumer. Returns 0 or -errno; then its connection is to be closed. */
int consumer_handle(struct consumer *c, const void *buf, size_t len, int *fds, size_t n_fds);
/* Restarts the time for the answers that are still missing. Called after each answer. */
void consumer_note_answer(struct consumer *c);
/*
 * Watches a predecessor's process: while it lives, no other one may write its trace. Returns 0 or
 * -errno.
 */
int consumer_watch_adopted(struct consumer *c);

#endif
