/* SPDX-License-Identifier: MIT */
/*
 * A connected application: the daemon's side of docs/protocol.md. The daemon never waits for it:
 * its pending replies are tickets (barrier.h). The daemon checks all that the application sends,
 * bounds it, and charges it to the application. A malformed message ends the conversation.
 */
#ifndef SESSIOND_PEERS_APP_H
#define SESSIOND_PEERS_APP_H

#include "proto/app.h"
#include "sessiond/model/contents.h"
#include "sessiond/peers/barrier.h"
#include "svc/msg-conn.h"
#include "svc/unix.h"

struct process;

#define APP_NAME_MAX	 sizeof(((struct definer *)0)->name)
#define APP_PENDING_MAX	 8192u /* answers that a program may owe */
#define APP_QUEUE_MAX	 (1u << 20)
#define APP_HELLO_NS	 (1000 * KY_NS_PER_MS)
#define APP_HELLO_LOOKS	 4 /* in that time: one is lost if the whole machine stands still */
#define ACCEPT_ALL_NS	 (20 * KY_NS_PER_MS)
#define QUERY_ALL	 0u /* number of a query that belongs to no ring set: for `list-events` */
#define EVENT_NOT_MAPPED UINT32_MAX

struct app {
	struct ky_list node; /* in peers->apps */
	struct env *env;
	struct user *user;
	struct ky_msg_conn conn;
	struct ky_timer deadline; /* of HELLO: the next look */
	unsigned n_looks;
	bool registered;
	pid_t pid;		 /* from the kernel */
	gid_t gid;		 /* likewise */
	uint32_t vpid;		 /* from the application: in its PID namespace */
	uint32_t number;	 /* likewise: in slot words */
	struct process *process; /* if its threads may own slots; or NULL */
	uint32_t abi_bits, caps;
	char name[APP_NAME_MAX];
	struct event_desc **events; /* by the program's index; NULL: not known */
	uint32_t n_events;	    /* room in events */
	/* of the message EVENTS that is handled, if that took more than one turn of the loop */
	uint32_t n_taken;
	size_t taken_bytes;
	struct ky_list sets; /* struct app_set */
	struct ky_list tickets;
	struct barrier
		flush; /* completes when its events are written; loop NULL: it has not sent FLUSH */
	struct op flushed;     /* completed by `flush` */
	uint32_t flush_cookie; /* of its FLUSH */
	unsigned n_queries;    /* not answered yet */
	unsigned n_owed;       /* answers of all kinds that it owes */
	unsigned n_dones;      /* DONEs due after them: one for HELLO and each NEW_EVENTS */
	bool asks_again;       /* it has new events since the queries in flight */
	bool listed;	       /* HELLO, which is being handled, has listed all of its events */
	bool known;	       /* `events` has all of the program's */
	bool answered;	       /* it has confirmed everything since its last HELLO or NEW_EVENTS */
	bool leaves;	       /* to register again */
	bool end_reported;     /* as one that ended before it was recorded */
	uint64_t complained; /* sessions with smaller numbers have a notice about it; 0: none has */
	struct ky_list left_out; /* struct left_out, charged to the user */
};

/* A program and a ring set that it is, or may come to be, recording into. */
struct app_set {
	struct ky_list app_node, set_node; /* in app->sets, set->users */
	struct app *app;
	struct ring_set *set;
	uint32_t *ids; /* by index; EVENT_NOT_MAPPED */
	uint32_t n_ids;
	uint32_t n_mapped; /* events that have an identifier */
	uint64_t *filters; /* by index: hash of the filters' numbers that MAP named; 0: none */
	uint32_t n_filters;
	uint32_t *known; /* filters' numbers that the program has */
	uint32_t n_known, known_cap;
	uint32_t n_contexts;   /* of the channel's, that the program knows */
	uint32_t start_cookie; /* of the last START */
	bool sent;	       /* the program has the set */
	bool started;	       /* the program records into it */
	bool changed;	       /* mapped or unmapped events since START */
	bool recording;	       /* the program has said so since START */
	bool late;	       /* has been LATE */
	bool state_due;	       /* has started, and STATEDUMP was not sent since */
};

/* Serves a connection on app.sock. Takes ownership of fd. */
void app_accept(struct env *e, int fd, const struct ky_peer *peer);
struct app *app_free(struct app *a); /* NULL */

/* Orders all applications that have the set to unmap it. */
void apps_drop_set(struct ring_set *set);
/* Frees all that applications have of the set. */
void apps_forget_set(struct ring_set *set);

/* Makes b also wait for queries of this session that are in flight and that nobody waits for. */
void apps_await_queries(const struct session *s, struct barrier *b);
/* Asks every program that the channel may record for what the rules want; maps what it answers. */
void apps_query_channel(struct channel *c, struct barrier *b);
/*
 * Brings applications up to date after the session changed the set of tracked processes. Those that
 * are no longer tracked drop its sets, and the daemon asks the new ones for their events. b waits
 * until both are in effect.
 */
void apps_track(struct session *s, struct barrier *b);
bool app_is_tracked(const struct app *a, const struct session *s);
/* Asks all applications for those of their events that are not known. */
void apps_query_all(const struct env *e, struct barrier *b);
/*
 * Unmaps the events that no rule of the channel matches any more, and updates the filters of the
 * others. b waits until applications no longer record the unmapped events.
 */
void apps_unmap_unwanted(struct channel *c, struct barrier *b);

/* Brings the triggers of the session's events up to date. b waits until they are in effect. */
void apps_update_triggers(struct session *s, struct barrier *b);

/* Sends the channel's new blocking timeout. */
void apps_send_blocking(struct channel *c);

/*
 * Brings the channel's events up to date with its contexts, and with its treatment of conflicts:
 * applications record them as they are described now. b waits until they do; it may be NULL. An
 * application that records loses nothing by it.
 */
void apps_renew_channel(struct channel *c, struct barrier *b);

/* Orders; nothing happens where the order makes no difference. b waits for the ACK; may be NULL. */
void app_set_start(struct app_set *as, struct barrier *b);
void app_set_stop(struct app_set *as, struct barrier *b);
void app_set_drop(struct app_set *as, struct barrier *b);

/*
 * Makes applications record their state into those of the session's sets that have started since
 * the last time; all: into each set that has started. b waits for it; it may be NULL.
 */
void apps_dump_state(struct session *s, bool all, struct barrier *b);
/*
 * Reports programs that have ended before sessions could record them, and whose connections the
 * daemon has not yet read to their ends, or not yet accepted. Call it before a session ends, and
 * before its state is reported.
 */
void apps_report_ended(struct env *e);
/* The process has exited, and still has its ring sets. */
void apps_process_ended(const struct process *p);

/* Returns whether the application has a ring set of the session. */
bool app_records_into(const struct app *a, const struct session *s);
/* Returns the number of the application's events that the session records. */
unsigned app_count_mapped(const struct app *a, const struct session *s);

/* --- for the sources of applications alone: app.c, app-set.c, app-query.c, app-map.c --- */

/*
 * Returns the application's part of the set, or NULL if it has none. app_set_get() makes it; it
 * returns NULL if allocation fails.
 */
struct app_set *app_set_find(const struct app *a, uint32_t number);
struct app_set *app_set_get(struct app *a, struct ring_set *set);
/* Frees it, and the set, if that was for this application only, and never made. */
void app_set_release(struct app_set *as);
bool app_set_is_mapped(const struct app_set *as, uint32_t index);
void app_set_forget_mapping(struct app_set *as, uint32_t index);
/* The index must be in the table. */
void app_set_map(struct app_set *as, uint32_t index, uint32_t id);
/* Sends the application the set, once. Returns 0 or -errno. */
int app_set_send(struct app_set *as);
/*
 * Adds a reply that the application has to send, which is charged to its user. b may be NULL.
 * Returns NULL if allocation fails; also if the application owes too much, and drops it then.
 */
struct ticket *app_owe(struct app *a, enum ticket_kind kind, uint32_t key, struct barrier *b);
/* Watches its process, for its end. Returns false if that is not possible. */
bool app_watch_process(struct app *a);
/* Asks the application for the events that sessions match. */
void app_query_everything(struct app *a);
/*
 * Asks a starting application for all of its events, and records those that have similar names. The
 * daemon of one command does so, because it explains a rule that matched nothing when the
 * applications have exited.
 */
void app_query_similar(struct app *a);
void app_note_similar(struct app *a);
/*
 * Requests that the application record its state into its sets of the session, in one message: into
 * all of them, or into those without such a request so far.
 */
void app_dump_state(struct app *a, const struct session *s, bool all, struct barrier *b);
/*
 * Handles the application's answer to a query. as: NULL for QUERY_ALL, and if the session has ended
 * meanwhile. Returns 0 or -errno; -EAGAIN if the user's time is over: the same message comes again.
 */
int app_take_events(struct app *a, const struct ky_app_events *m, struct app_set *as);
/* Learns the events that HELLO lists. Returns 0 or -errno. */
int app_take_list(struct app *a, const struct ky_app_hello *m);
/* Maps those of the application's known events that the set's channel wants. */
void app_map_known(struct app_set *as);
/* Starts the set in the application if its session records; also to confirm new mappings. */
void app_set_follow(struct app_set *as, struct barrier *b);
/* Returns whether it is one of the tracer's own events, which each application has. */
bool app_event_is_tracers(const struct event_desc *d);
/* Returns whether the session may record the application. Its notices name the obstacle if not. */
bool app_can_be_recorded(const struct app *a, struct session *s);
/*
 * Keeps what the application cannot record, and reports it to the sessions that want it. Ignores it
 * if it is kept already, and if the user's applications have USER_LEFT_OUT_MAX. Returns 0 or
 * -errno.
 */
int app_add_left_out(struct app *a, const char *event, const char *why);
/* Reports to the channel's session what its rules want and the application cannot record. */
void app_note_left_out(const struct app *a, const struct channel *c);
void app_free_left_out(struct app *a);
/*
 * Reports that the daemon has no room for some events of the application, or cannot speak with it:
 * in the log, and to the sessions that want its user. Does so once for each of them.
 */
void app_complain(struct app *a, const char *fmt, ...) KY_PRINTF(2, 3);

#endif
