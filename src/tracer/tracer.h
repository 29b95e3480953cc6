/* SPDX-License-Identifier: MIT */
/*
 * Inside libkymo. The tracer is a guest in another program's process: it allocates from its own
 * mappings only, never prints (except for KYMO_DEBUG), never exits, and preserves errno.
 *
 * Threads: one listener thread communicates with the daemons and makes all changes. The
 * application's threads enter when objects are loaded and unloaded, at fork, and when they record.
 * tracer.lock protects everything that is declared here. Recording (ring/writer.h) takes no lock.
 */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>

#include "abi/state.h"
#include "proto/app.h"
#include "proto/desc.h"
#include "ring/writer.h"

#define TRACER_MAX_EVENTS 65536u
#define TRACER_MAX_SETS	  256u
#define TRACER_N_CONNS	  2u /* the global daemon and the user's own */

/*
 * One tracepoint of the process. Its index identifies it to the daemons. An entry whose object was
 * unloaded keeps its hooks, and is used again if the same event is loaded again: what the daemons
 * know of it stays true.
 */
struct tracer_event {
	const struct kymo_event *ev; /* NULL: unloaded */
	struct kymo_object *object;
	struct ky_hook *hooks;
	uint64_t signature; /* of the description; computed when it is unloaded */
	uint64_t n_asked;   /* tracer.n_asked at that time */
	uint32_t next;	    /* PLAIN: next in the list of its name; number from 1, or 0 */
};

/* How much of a ring's memory was populated ahead of the writers. */
struct tracer_ring {
	uint64_t seen;	  /* position of the head at the last look */
	uint64_t present; /* bytes from the ring's start */
};

/* State of a set in the daemon that is connected. */
enum tracer_standing {
	TRACER_KNOWN = 0,
	TRACER_ORPHAN,	 /* the daemon was killed: recording continues */
	TRACER_CONFIRMED /* its successor has sent the set again, but no START yet */
};

/*
 * A descriptor of the listener. If the listener could not get its own table, the application may
 * close unknown descriptors, and the number may then be another file. So the listener uses and
 * closes it only while it is still the original file.
 */
struct tracer_fd {
	int fd;	    /* or -1 */
	bool apart; /* in the listener's own table: of no other thread, and of no child */
	uint64_t dev, ino;
};

/* A ring set, and the connection that owns it. */
struct tracer_set {
	struct ky_set set;
	struct tracer_conn *conn; /* NULL: free */
	/* all contexts that its events may have; NULL: none */
	const struct tracer_contexts *contexts;
	/* programs of filters, as the daemon numbers them; see filter.h */
	struct tracer_program *programs;
	uint32_t n_programs;
	struct tracer_ring *populated; /* for each ring */
	/* number of entries for which set.rings and populated have room */
	uint32_t rings_cap;
	/* the application's state was reported to it since it started, or will be at once */
	bool dumped;
	uint32_t session; /* the daemon's number of it; 0: not known */
	bool zombie;	  /* could not be proved unused: its mappings are never removed */
	bool lasting;	  /* outlives its daemon */
	bool needs_limit; /* spreads, and does not heed the group's limit of memory yet */
	/* some of the threads' rings are mapped; rings: to map more of them */
	bool in_parts;
	struct tracer_fd rings;
	enum tracer_standing standing; /* in the daemon's successor */
	bool stopped_alone;	       /* by tracer_sets_follow() */
	uint64_t dev, ino;	       /* the file of the rings' memory */
};

/*
 * A subset of tracer_sets. Changed under the lock; the thread that dumps reads it without the lock.
 */
struct tracer_mask {
	uint64_t bits[TRACER_MAX_SETS / 64];
};

/* The connection to one daemon. */
struct tracer_conn {
	/* run directory; "" if there is no such daemon for this process */
	char dir[96];
	struct tracer_fd socket; /* connected */
	struct tracer_fd wake;	 /* FIFO that is polled while there is no daemon */
	bool tried;		 /* the first attempt to connect has been made */
	bool awaited;		 /* a thread waits, or has waited, for its answer */
	uint32_t unsent;	 /* NEW_EVENTS that the listener has to send */
	uint32_t sent_uncounted; /* failed counters that the daemon knows: 1 << number */
	uint32_t sent_left_out;	 /* entries of left-out.c that the daemon knows */
	uint32_t unmapped_set;	 /* the last set that could not be mapped: its number, */
	int unmapped_why;	 /* and -errno */
	/* HELLO and NEW_EVENTS sent; DONE received. Threads that wait read `answered` unlocked. */
	uint32_t asked, answered;
	uint64_t connected_ns; /* when the last attempt succeeded */
	/*
	 * The time since which the application runs although the daemon has not answered all
	 * requests. Valid only while that is so. The application's threads set it too, without the
	 * lock.
	 */
	uint64_t unheard_ns;
	/* time of the next attempt, CLOCK_MONOTONIC; 0: when the FIFO reports a daemon */
	uint64_t retry_ns;
	uint32_t backoff_ms; /* delay of the last attempt */
	uint64_t heard;	     /* messages received */
	bool flushing;	     /* FLUSH was sent; */
	bool flushed;	     /* and answered */
	pid_t daemon; /* pid of the peer in our namespace; 0: no peer, or not visible to us */
};

struct tracer {
	pthread_mutex_t lock;
	bool off;	       /* not to be traced: setuid, KYMO_OFF, allocation failed */
	bool started;	       /* the listener exists */
	pthread_mutex_t alive; /* robust; the listener holds it as long as it lives */
	bool filtered_early;   /* a system call filter existed at the application's start */
	bool filtered;	       /* one exists since, as the listener has seen */
	bool survives_filter;  /* and the listener has communicated with a daemon under it */
	bool may_follow;       /* no filter forbids the calls for changes of user */
	bool debug;
	bool has_rseq;
	/* it may lock its memory (locks.h), or valgrind examines all that is mapped */
	bool spare_mappings;
	bool in_valgrind;
	bool may_lock;	     /* the program refers to mlockall (locks.h) */
	bool ending;	     /* the application waits until what it recorded is written */
	bool dumping;	     /* events take the way that checks tracer_only */
	bool allow_blocking; /* KYMO_ALLOW_BLOCKING */
	int timeout_ms;	     /* KYMO_REGISTER_TIMEOUT */
	uid_t uid;	     /* effective user, as which the connections were made */
	uid_t uid_outside; /* the same before a user namespace that does not map it yet; else -1 */
	uint32_t turn;	   /* futex: changes whenever a waiter should check again */
	bool turned;	   /* its waiters are not yet woken */
	uint32_t n_starting; /* threads of ours that were created and do not run their code yet */
	/* of the process, while a listener that it has just started connects; or "" */
	char name[16];
	pthread_key_t thread_end;
	struct tracer_event *events; /* moves when it grows */
	uint32_t n_events;
	uint32_t n_unloaded; /* entries to search for a known event */
	uint64_t n_asked;    /* how often daemons asked which events match */
	struct tracer_conn conns[TRACER_N_CONNS];
	const struct tracer_conn *companion; /* the connection of KYMO_STANDALONE; or NULL */
	/* entries of tracer_sets that were ever used: the memory behind them is not accessed */
	uint32_t n_sets;
};

extern struct tracer tracer;
extern struct tracer_set tracer_sets[TRACER_MAX_SETS];

/*
 * Take and release the lock alone; for our own threads, and where signals are blocked. If a system
 * call filter killed the holder inside the lock, the tracer gives up: it is off, and no event is
 * enabled. All threads still get the lock.
 */
void tracer_make_lock(void);
void tracer_take_lock(void);
void tracer_give_lock(void);
/* Switches the tracer off: no daemon can be reached any more. Called under the lock. */
void tracer_give_up(void);
/*
 * Returns true in QEMU's emulation of single programs: it has no vDSO and no restartable sequences.
 * Valgrind has neither, too.
 */
bool tracer_is_emulated(void);
/*
 * Take the lock and block signals, for the application's threads: a handler that forks would wait
 * for the lock forever.
 */
void tracer_lock(sigset_t *ret_old);
void tracer_unlock(const sigset_t *old);

/*
 * trial.c: returns true if the filter that exists kills for a call that we make. Takes about the
 * time of a fork().
 */
bool tracer_filter_kills(void);
/*
 * credentials.c: called first by each of our threads. From now on, the thread takes main's
 * capabilities whenever the program changes its user or groups.
 */
void tracer_follow_main(void);
bool tracer_is_filtered(void); /* by seccomp; true also if even that question is refused */
/*
 * trial.c: the same, for a thread of the application, which must not be killed for the question: a
 * thread of its own asks. Needs clone(). Called under the lock, or by the only thread.
 */
bool tracer_has_become_filtered(void);
/*
 * trial.c: clone() for a child in our memory. lives: for CLONE_CHILD_CLEARTID. A thread sanitizer
 * replaces clone(): its child takes itself for one of fork(), and reads from the caller's frame,
 * which may have returned.
 */
pid_t tracer_clone(int (*fn)(void *), void *stack_end, int flags, void *arg, uint32_t *lives);
/*
 * The same for the listener alone, with calls that loading an object makes anyway. False if /proc
 * does not say.
 */
bool tracer_listener_is_filtered(void);
/*
 * Returns true if the application has had a system call filter since it started and nobody knows
 * whether the filter kills for our calls: the listener has not communicated with a daemon since.
 */
bool tracer_may_be_killed(void);

struct dl_phdr_info;
/* Returns true if the address is in a segment of this shared object or program. */
bool tracer_is_within(const struct dl_phdr_info *info, const void *address);
/* Marks an object of the main program: it stays until the end. Called without the lock. */
void tracer_object_look(struct kymo_object *object);

/* With KYMO_DEBUG, prints a line on the standard error output: the only output of libkymo. */
void tracer_debug(const char *fmt, ...) KY_PRINTF(1, 2);

/*
 * Allocates zeroed memory from the tracer's own mappings. Returns NULL if there is none. `wiped`:
 * it reads as zeros in a forked child. It is never freed; in a child, tracer_mem_reset makes the
 * wiped part free again.
 */
void *tracer_alloc(size_t size, bool wiped);
void tracer_mem_reset(void);

/* fork.c */
/* Called last in the initialization. */
void tracer_fork_init(void);
/* Called first by the listener: from then on, the children of raw clone() are recognised. */
void tracer_fork_mark_home(void);
/*
 * Drops what the process has of the tracer, starts the tracer's threads, and registers the process
 * as if it had just started. Called by the only thread, with all signals blocked. is_child: of
 * fork.
 */
void tracer_register_again(bool is_child);
/*
 * Returns true in the child of a raw clone() or _Fork(): there is no listener, the lock may be held
 * by a thread that does not exist there, and the rings are the parent's. Makes no system call,
 * because a process may be killed where they are forbidden.
 */
bool tracer_is_raw_child(void);

/* events.c; all are called under the lock */
/* Adds an object's events. Returns how many are new to the daemons (not known from before). */
uint32_t tracer_events_add(struct kymo_object *object);
void tracer_events_remove(struct kymo_object *object);
/*
 * Appends { index, description } of all events. Returns their number; 0 if there are more than
 * KY_LISTED_MAX, or no room for them: then `list` is not to be sent.
 */
uint32_t tracer_events_list(struct ky_writer *list);
/*
 * Appends { index, description } of matching events from *index on, until `list` is full. Counts
 * them in *ret_n.
 */
void tracer_events_match(struct ky_bytes rules, uint32_t n_rules, uint32_t *index,
	struct ky_writer *list, uint32_t *ret_n);
/*
 * Updates `enabled` of the event from its hooks, or (called afterwards) of all queries and links.
 */
void tracer_event_update(struct tracer_event *e);
/* Reports the event to the daemons as one that the application cannot record. */
void tracer_event_leave_out(const struct kymo_event *ev, const char *fmt, ...) KY_PRINTF(2, 3);
void tracer_queries_update(void);
/* Disables all events: nothing is recorded any more. */
void tracer_events_disable(void);
/* Called in a forked child: nothing is enabled. */
void tracer_events_reset(void);

/* left-out.c: returns entry i, if there is one. Takes no lock. */
bool tracer_left_out_get(uint32_t i, struct ky_app_left_out *ret_message);

/*
 * sets.c, set-hooks.c, set-memory.c; all are called under the lock, which stop and drop release
 * while they wait
 */
int tracer_set_add(
	struct tracer_conn *conn, const struct ky_app_ring_set *msg, int rings_fd, int consumed_fd);
void tracer_set_contexts(struct tracer_conn *conn, const struct ky_app_contexts *msg);
void tracer_set_filters(struct tracer_conn *conn, const struct ky_app_filters *msg);
void tracer_set_blocking(struct tracer_conn *conn, const struct ky_app_blocking *msg);
void tracer_set_map(struct tracer_conn *conn, const struct ky_app_map *msg);
void tracer_set_triggers(struct tracer_conn *conn, const struct ky_app_triggers *msg);
void tracer_set_unmap(struct tracer_conn *conn, const struct ky_app_unmap *msg);
int tracer_set_start(struct tracer_conn *conn, uint32_t id);
/*
 * Returns whether START of the set enables events that were not recorded before. It does not if the
 * set continues after its daemon's death.
 */
bool tracer_set_begins(struct tracer_conn *conn, uint32_t id);
/* After these return, no thread records into the set. */
int tracer_set_stop(struct tracer_conn *conn, uint32_t id);
int tracer_set_drop(struct tracer_conn *conn, uint32_t id);
/*
 * Drops all sets, because the application now belongs to another user: nothing that it had before
 * stays mapped.
 */
void tracer_sets_drop_all(struct tracer_conn *conn);
/* Handles a daemon that disconnected: leaves sets that outlive it unchanged, drops the others. */
void tracer_sets_orphan(struct tracer_conn *conn);
/*
 * Stops and starts sets that have outlived their daemon, as their memory says that the session does
 * (KY_SET_STOPPED). Makes no system call.
 */
void tracer_sets_follow(struct tracer_conn *conn);
/*
 * Handles the end of a daemon's initial messages: drops or stops the predecessor's sets that it
 * does not know.
 */
void tracer_sets_settle(struct tracer_conn *conn);
/* Forgets all sets. is_child: of fork, where most of their mappings do not exist. */
void tracer_sets_reset(bool is_child);
/*
 * Populates the memory ahead of the writers. Called by the listener, without the lock. Returns true
 * if it should be called again soon.
 */
bool tracer_sets_populate(void);
/*
 * Returns true if a set does not heed the limit of memory of the control group yet, and no thread
 * waits for its daemon's answers: to read the limit takes as long as these answers.
 */
bool tracer_sets_need_limit(void);
/* Makes these sets heed the limit. Called by the listener, without the lock. */
void tracer_sets_limit(void);
/* Called at the end of a thread, without the lock. */
void tracer_sets_release_thread(void);

/* conn.c */
/* Takes over fd if it has this type; closes it otherwise. */
struct tracer_fd tracer_fd_adopt(int fd, mode_t type);
bool tracer_fd_is_ours(const struct tracer_fd *f);
/* Called by the listener when it has a table of descriptors of its own: all in it are ours. */
void tracer_fd_own_table(void);
void tracer_fd_drop(struct tracer_fd *f);
/* Stores the name of the process: not of this thread, but of main, as /proc/self/comm has it. */
void tracer_process_name(char *name, size_t size);
void tracer_conn_init(struct tracer_conn *conn, const char *dir);
/*
 * The listener's first attempt to connect. If no daemon seems to run, the attempt comes later, and
 * nothing waits for it.
 */
void tracer_conn_begin(struct tracer_conn *conn);
/* Connects if there is a daemon; else arranges to be woken when one starts. */
void tracer_conn_try(struct tracer_conn *conn);
void tracer_conn_close(struct tracer_conn *conn);
/* Disconnects, drops all sets and connects again, as another user. */
void tracer_conn_renew(struct tracer_conn *conn);
/* Called in a forked child: drops the parent's connection. */
void tracer_conn_reset(struct tracer_conn *conn);
/* Called after poll() reported something: drops descriptors that the application has closed. */
void tracer_conn_verify(struct tracer_conn *conn);
/*
 * Returns true if no daemon can touch the FIFO that the connection waits for, because the run
 * directory was removed or replaced.
 */
bool tracer_conn_is_cut_off(const struct tracer_conn *conn);
/* User id that a user namespace shows for users that it does not map: root of the host, too. */
#define TRACER_OVERFLOW_UID 65534u
/*
 * Returns whether the process's user namespace maps the user, and the id in the namespace around
 * it. Returns true and -1 if that cannot be read, or nobody is mapped.
 */
bool tracer_user_outside(uid_t uid, uid_t *ret_outside);
/* Receives and handles a message. Returns false if there was none, or the connection ended. */
bool tracer_conn_receive(struct tracer_conn *conn);
/*
 * Requests a NEW_EVENTS, which the listener sends. Called by any thread. Returns false if there is
 * no daemon to send it to.
 */
bool tracer_conn_new_events(struct tracer_conn *conn);
/* Sends NEW_EVENTS, and counters that failed. Called by the listener. */
void tracer_conn_send_unsent(struct tracer_conn *conn);
/* Reports that a trigger has fired. Called by the listener. */
void tracer_conn_send_fired(struct tracer_conn *conn);
/* Sends the same, and replies that were late. */
void tracer_conn_send_late(struct tracer_conn *conn);
/* Reads the daemon's state page. Returns false if there is no daemon, or none that we trust. */
bool tracer_conn_state(const struct tracer_conn *conn, struct ky_state *ret_state);
/*
 * Returns whether a daemon has a session that is worth waiting for, and its progress. If a
 * container was given the daemon's socket without the state page, it may have one.
 */
bool tracer_conn_is_active(const struct tracer_conn *conn, uint64_t *ret_progress);

/*
 * standalone.c: initializes conn as the connection to the companion of KYMO_STANDALONE's trace, and
 * starts the companion if there is none. Returns false if it is not requested or impossible; in the
 * second case the user got a message.
 */
bool tracer_standalone(struct tracer_conn *conn);

/* last.c */
/* Called in the thread that may be main. */
void tracer_last_init(void);
/* Called in a forked child: the calling thread is main. */
void tracer_last_set_main(void);
/* For the listener: whether the application's main thread lives. */
enum tracer_main { TRACER_MAIN_LIVES, TRACER_MAIN_ENDS, TRACER_MAIN_WAS_LAST };
/*
 * Returns TRACER_MAIN_WAS_LAST if main has ended and no thread but the listener is left, which then
 * calls tracer_last_end_as_main(). A main that ended by pthread_exit() lives in this sense.
 */
enum tracer_main tracer_last_look(void);
/*
 * Counts the tracer's threads without the calling one, and the program's without main. Returns
 * false if /proc does not show them.
 */
bool tracer_count_threads(unsigned *ret_ours, unsigned *ret_others);
/* Ends the listener, and so the process, with the status that the process would have without it. */
_Noreturn void tracer_last_end_as_main(void);

/* thread-id.c */
/* Called in a forked child: it has another id. */
void tracer_thread_id_reset(void);

/* listener.c */
/*
 * Starts the listener. Called with all signals blocked, as they stay in the listener. is_alone: the
 * caller is the only thread. Then it shares its current directory and root with no thread from now
 * on, and not only when the listener has its own: it can enter another mount namespace at once.
 */
int tracer_listener_start(bool is_alone);
/* Wakes the listener, which then checks whether there is something to send. Needs no path. */
void tracer_listener_wake(void);
/*
 * Waits until the daemons have replied for all events known so far. The wait is bounded. Called
 * without the lock.
 */
void tracer_wait_registered(void);
/*
 * Notes that the application continues now, even if the daemons have not answered. Takes no lock.
 */
void tracer_note_unheard(void);
/*
 * Waits, at the application's end, until its companion has written what was recorded. The wait is
 * bounded. Takes no lock.
 */
void tracer_wait_written(void);
/* Wakes threads that wait for a daemon's answer, when the lock is given: they need it. */
void tracer_wake_waiters(void);
/* Returns true if the listener was killed and the application was not. Makes no system call. */
bool tracer_listener_died(void);
/* Returns true, once, if the thread that held the robust mutex has died with it. */
bool tracer_has_died_with(pthread_mutex_t *m);
/* Ends the listener soon. */
void tracer_listener_end(void);
bool tracer_listener_is(pid_t thread);
/*
 * Returns false while it starts, or ends for certain: tracer_listener_is() does not know it. Under
 * the lock.
 */
bool tracer_listener_runs(void);
/* Returns false when the kernel has ended its thread, after all that the C library does there. */
bool tracer_listener_exists(void);
/* Revokes tracer_listener_end(), if the listener still runs. Under the lock. */
void tracer_listener_stay(void);

#endif
