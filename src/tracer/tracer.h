/* SPDX-License-Identifier: MIT */
/*
 * Inside libkymo. The tracer is a guest in somebody else's process: it allocates from its own
 * mappings only, never prints (but for KYMO_DEBUG), never exits, and keeps errno.
 *
 * Threads: one listener thread talks to the daemons and changes everything; the program's threads
 * come in when objects are loaded and unloaded, at fork, and when they record. tracer.lock protects
 * all that is declared here; recording (ring/writer.h) takes no lock.
 */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

#include <pthread.h>
#include <signal.h>

#include "abi/state.h"
#include "proto/app.h"
#include "proto/desc.h"
#include "ring/writer.h"

#define TRACER_MAX_EVENTS 65536u
#define TRACER_MAX_SETS	  256u
#define TRACER_N_CONNS	  2u /* the global daemon and the user's own */

/*
 * One tracepoint of the process; its index is its name towards the daemons. An entry whose object
 * was unloaded keeps its hooks, and serves again when the same event is loaded again: what the
 * daemons know of it stays true.
 */
struct tracer_event {
	const struct kymo_event *ev; /* NULL: unloaded */
	struct kymo_object *object;
	struct ky_hook *hooks;
	uint64_t signature; /* of the description; computed when it is unloaded */
	uint64_t n_asked;   /* tracer.n_asked at that time */
	uint32_t next;	    /* PLAIN: in the list its name leads to; number from 1, or 0 */
};

/* How much of a ring's memory was made present ahead of the writers. */
struct tracer_ring {
	uint64_t seen;	  /* position of the head at the last look */
	uint64_t present; /* bytes from the ring's start */
};

/* What the daemon at the other end knows of a set. */
enum tracer_standing {
	TRACER_KNOWN = 0,
	TRACER_ORPHAN,	 /* the daemon was killed: recording goes on */
	TRACER_CONFIRMED /* its successor has brought the set again, but no START yet */
};

/* A ring set, and whose it is. */
struct tracer_set {
	struct ky_set set;
	struct tracer_conn *conn;		/* NULL: free */
	const struct tracer_contexts *contexts; /* all that its events may have; NULL: none */
	struct tracer_program *programs; /* of filters, as the daemon numbers them; see filter.h */
	uint32_t n_programs;
	struct tracer_ring *populated; /* for each ring */
	uint32_t rings_cap;	       /* entries that set.rings and populated have room for */
	bool dumped;  /* has been told the program's state since it started, or is about to be */
	bool zombie;  /* could not be proved unused: its mappings are kept for ever */
	bool lasting; /* outlives its daemon */
	enum tracer_standing standing; /* with the daemon's successor */
	uint64_t dev, ino;	       /* of the rings' memory */
};

/* Some of tracer.sets. Changed under the lock; read by the thread that dumps without it. */
struct tracer_mask {
	uint64_t bits[TRACER_MAX_SETS / 64];
};

/*
 * A descriptor of the listener's. Where that could not get a table of its own, the program may close what it does not
 * know, and the number may be another file's then: it is used, and closed, only while it still is the file it was.
 */
struct tracer_fd {
	int fd; /* or -1 */
	uint64_t dev, ino;
};

/* The way to one daemon. */
struct tracer_conn {
	char dir[96];		  /* run directory; "" when there is no such daemon for us */
	struct tracer_fd socket;  /* connected */
	struct tracer_fd wake;	  /* FIFO polled while there is no daemon */
	bool tried;		  /* the first attempt to connect has been made */
	bool awaited;		  /* somebody waits, or has waited, for its answer */
	uint32_t unsent;	  /* NEW_EVENTS that the listener is to send */
	uint32_t told_uncounted;  /* counters that the daemon knows to have failed: 1 << number */
	uint32_t unmapped_set;	  /* the last that could not be mapped: its number, */
	int unmapped_why;	  /* -errno */
	uint32_t asked, answered; /* HELLO and NEW_EVENTS sent; DONE received */
	uint64_t connected_ns;	  /* when the last attempt succeeded */
	/*
	 * since when the program runs though the daemon has not answered all that it was asked; means something only while
	 * that is so. Set by the program's threads too, without the lock.
	 */
	uint64_t unheard_ns;
	/* when the next attempt is due, CLOCK_MONOTONIC; 0: when the FIFO says so */
	uint64_t retry_ns;
	uint32_t backoff_ms; /* that the last attempt was put off */
	uint64_t heard;	     /* messages received */
	bool flushing;	     /* FLUSH was sent; */
	bool flushed;	     /* and answered */
	pid_t daemon; /* who is at the other end, as we see it; 0: nobody, or out of our sight */
};

struct tracer {
	pthread_mutex_t lock;
	bool off;	       /* not to be traced: setuid, KYMO_OFF, out of memory */
	bool started;	       /* the listener exists */
	pthread_mutex_t alive; /* robust; the listener's, as long as it lives */
	bool filtered_early;   /* a filter of system calls was there at the program's start */
	bool filtered;	       /* there is one since, as the listener has seen */
	bool survives_filter;  /* and the listener has talked to a daemon under it */
	bool debug;
	bool has_rseq;
	bool ending;	     /* the program waits for what it recorded to be written */
	bool dumping;	     /* events take the way that looks at tracer_only */
	bool allow_blocking; /* KYMO_ALLOW_BLOCKING */
	int timeout_ms;	     /* KYMO_REGISTER_TIMEOUT */
	uid_t uid;	     /* effective; as which the connections were made */
	uint32_t turn;	     /* futex: changes whenever a waiter should look again */
	pthread_key_t thread_end;
	struct tracer_event *events; /* moves when it grows */
	uint32_t n_events;
	uint32_t n_unloaded; /* entries to look through for a known event */
	uint64_t n_asked;    /* how often daemons asked what matches */
	struct tracer_conn conns[TRACER_N_CONNS];
	const struct tracer_conn *companion; /* that of KYMO_STANDALONE; or NULL */
	uint32_t n_sets; /* of `sets`, that were ever used: the memory behind them is not touched */
	struct tracer_set sets[TRACER_MAX_SETS];
};

extern struct tracer tracer;

/*
 * The lock alone; for our own threads, and where signals are held back. If its holder was killed in it (by a filter of
 * system calls), the tracer gives up: it is off, and no event is enabled. Everybody gets the lock all the same.
 */
void tracer_make_lock(void);
void tracer_take_lock(void);
void tracer_give_lock(void);
/* The lock, and no signals, for the program's threads: a handler that forks would wait for it for ever. */
void tracer_lock(sigset_t *ret_old);
void tracer_unlock(const sigset_t *old);

/* By the listener, first: children made by raw clone() are not home from then on. */
void tracer_settle(void);
bool tracer_is_filtered(void); /* by seccomp; also when even that question is refused */
/*
 * The program has a filter of system calls since it started, and no one knows whether that kills for ours: the listener
 * has not talked to a daemon since.
 */
bool tracer_may_be_killed(void);

/*
 * In the child of a raw clone() or _Fork(): there is no listener, the lock may be somebody's who is not there, and rings
 * are the parent's. Asked without a system call, because a program may end where they are forbidden.
 */
bool tracer_is_stranger(void);
struct dl_phdr_info;
/* Is the address in a segment of this shared object, or program? */
bool tracer_is_within(const struct dl_phdr_info *info, const void *address);
/* An object of the main program's is marked: it stays until the end. Without the lock. */
void tracer_object_look(struct kymo_object *object);

void tracer_debug(const char *fmt, ...) KY_PRINTF(1, 2);

/*
 * Memory from the tracer's own mappings, zeroed; NULL when there is none. `wiped`: reads as zeros
 * in a forked child. Never freed; tracer_mem_reset makes the wiped part free again, in a child.
 */
void *tracer_alloc(size_t size, bool wiped);
void tracer_mem_reset(void);

/* events.c; all under the lock */
/* Adds an object's events. Returns how many are new to the daemons (not known from before). */
uint32_t tracer_events_add(struct kymo_object *object);
void tracer_events_remove(struct kymo_object *object);
/* Appends { index, description } of matching events from *index on, until `list` is full; counts in
 * *ret_n. */
void tracer_events_match(struct ky_bytes rules, uint32_t n_rules, uint32_t *index,
	struct ky_writer *list, uint32_t *ret_n);
/* Brings `enabled` of the event (or, afterwards, of all queries and links) up to date with its hooks. */
void tracer_event_update(struct tracer_event *e);
void tracer_queries_update(void);
/* Nothing is recorded any more. */
void tracer_events_disable(void);
/* In a forked child: nothing is enabled. */
void tracer_events_reset(void);

/* sets.c; all under the lock, but for the waiting inside stop and drop */
int tracer_set_add(
	struct tracer_conn *conn, const struct ky_app_ring_set *msg, int rings_fd, int consumed_fd);
void tracer_set_contexts(struct tracer_conn *conn, const struct ky_app_contexts *msg);
void tracer_set_filters(struct tracer_conn *conn, const struct ky_app_filters *msg);
void tracer_set_blocking(struct tracer_conn *conn, const struct ky_app_blocking *msg);
void tracer_set_map(struct tracer_conn *conn, const struct ky_app_map *msg);
void tracer_set_unmap(struct tracer_conn *conn, const struct ky_app_unmap *msg);
int tracer_set_start(struct tracer_conn *conn, uint32_t id);
/* Whether START of the set lets events be recorded that were not before: not if the set goes on after its daemon's death. */
bool tracer_set_begins(struct tracer_conn *conn, uint32_t id);
/* After these returned, no thread records into the set. */
int tracer_set_stop(struct tracer_conn *conn, uint32_t id);
int tracer_set_drop(struct tracer_conn *conn, uint32_t id);
/* The program is another user's now: nothing that it had before stays mapped. */
void tracer_sets_drop_all(struct tracer_conn *conn);
/* The daemon is gone: those that outlive it are left as they are, the others dropped. */
void tracer_sets_orphan(struct tracer_conn *conn);
/* A daemon has said all: what its predecessor left, and it does not know, is dropped or stopped. */
void tracer_sets_settle(struct tracer_conn *conn);
void tracer_sets_reset(void);
/* Makes the memory ahead of the writers present; by the listener, without the lock. True while it is worth coming back
 * soon. */
bool tracer_sets_populate(void);
/* At the end of a thread; without the lock. */
void tracer_sets_release_thread(void);

/* conn.c */
void tracer_conn_init(struct tracer_conn *conn, const char *dir);
/* Connects if there is a daemon; else sees to being woken when there is one. */
void tracer_conn_try(struct tracer_conn *conn);
void tracer_conn_close(struct tracer_conn *conn);
/* As another user: hangs up, gives up all sets, connects again. */
void tracer_conn_renew(struct tracer_conn *conn);
/* In a forked child: forgets the parent's connection. */
void tracer_conn_reset(struct tracer_conn *conn);
/* After poll() reported something: forgets descriptors that the program has closed behind our back. */
void tracer_conn_verify(struct tracer_conn *conn);
/* Takes a message. False: there was none, or the connection ended. */
bool tracer_conn_receive(struct tracer_conn *conn);
/* Asks for a NEW_EVENTS, which the listener sends; from any thread. False: there is nobody to send it to. */
bool tracer_conn_new_events(struct tracer_conn *conn);
/* NEW_EVENTS, and counters that failed; by the listener. */
void tracer_conn_send_unsent(struct tracer_conn *conn);
/* The same, and answers to what took its time. */
void tracer_conn_send_late(struct tracer_conn *conn);
/* The daemon's state page. False: no daemon, or none of ours. */
bool tracer_conn_state(const struct tracer_conn *conn, struct ky_state *ret_state);
/*
 * Whether a daemon has a session that is worth waiting for, and its progress. A container may have been given the daemon's
 * socket without the state page: then it may have one.
 */
bool tracer_conn_is_active(const struct tracer_conn *conn, uint64_t *ret_progress);

/*
 * standalone.c: initialises conn as the way to the companion of KYMO_STANDALONE's trace, which is started if there is none.
 * False when that is not asked for, or cannot be; then the user was told.
 */
bool tracer_standalone(struct tracer_conn *conn);

/* last.c */
/* In the thread that may be main. */
void tracer_last_init(void);
/* In a forked child: the calling thread is main. */
void tracer_last_set_main(void);

/* thread-id.c */
/* In a forked child: it has another. */
void tracer_thread_id_reset(void);

/* listener.c */
/* With all signals blocked, as they stay in the listener. */
int tracer_listener_start(void);
/* Makes the listener look whether there is something to send. Needs no path. */
void tracer_listener_wake(void);
/* Waits until the daemons have told what they want of the events known so far; bounded. Without the
 * lock. */
void tracer_wait_registered(void);
/* The program goes on now, whether the daemons have answered or not. Takes no lock. */
void tracer_note_unheard(void);
/* At the program's end, if it has a companion: until that has written what was recorded; bounded. Takes no lock. */
void tracer_wait_written(void);
void tracer_wake_waiters(void);
/* The listener was killed, and the program was not. Calls no system. */
bool tracer_listener_died(void);
/* Ends the listener, soon. */
void tracer_listener_end(void);
bool tracer_listener_is(pid_t thread);

#endif
