/* SPDX-License-Identifier: MIT */
/*
 * The one object that everything hangs on: loop, run directory, sockets, sessions, programs,
 * clients.
 */
#ifndef SESSIOND_DAEMON_H
#define SESSIOND_DAEMON_H

#include "sessiond/peers/collector.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/model/session.h"
#include "svc/unix.h"

struct daemon_options {
	const char *group;   /* that may control root's daemon */
	const char *pidfile; /* or NULL */
	bool bound;	     /* ends when stdin closes, and its sessions with it */
	bool while_used; /* ends when nobody has been connected for a second, and not at a signal */
	bool take_over;	 /* a daemon that serves here already hands its sessions over */
	bool no_collectd;
	const char *without; /* what the collector leaves out, as it wants it; "": nothing */
	uint64_t
		user_memory_max; /* bytes of buffers and metadata for each user; 0: quota_default() */
};

struct daemon {
	struct ky_loop loop;
	struct daemon_options options;
	struct rundir run;
	struct ky_listener app_listener, control_listener;
	struct ky_watch bound_watch, run_watch;
	struct ky_timer stop_timer;
	struct collector collector;
	struct ky_timer unused_timer;
	bool unused; /* its time runs */
	bool stopping;
	/* a predecessor's sessions (recover.h) */
	struct ky_listener drain_listener;
	struct ky_timer recover_timer;
	void (*on_recovered)(struct daemon *d); /* NULL: that was called */
	bool replaying;				/* its journals */
	bool making_room;			/* for a successor, once requests are answered */
	bool handing_over;			/* to it: sessions are left as they are */
	/* Parts that have yet to report before the daemon is ready; the last one calls on_ready. */
	unsigned n_unready;
	void (*on_ready)(struct daemon *d);
	struct ky_list sessions, apps, processes, users, clients, requests, selections;
	unsigned n_sessions, n_clients;
	unsigned user_apps_max;
	uint64_t user_memory_max; /* bytes (quota.h) */
	bool sets_wait;		  /* some do, for memory */
	struct ky_job quota_job;
	uid_t uid; /* the daemon's own */
	uint32_t n_cpus;
	enum ky_clock clock;
	uint32_t last_number, last_cookie; /* given to ring sets and orders */
	char hostname[65], boot_id[40], machine_id[40], product_uuid[40]; /* "": not known */
	int error; /* -errno of why it cannot serve, logged */
};

/* Takes the run directory. 0 or -errno, after a logged line; daemon_deinit in both cases. */
int daemon_init(
	struct daemon *d, const struct daemon_options *options, void (*on_ready)(struct daemon *d));
/* Takes over what a predecessor left, serves, and calls on_ready when all parts do. 0 or -errno, after a logged line. */
int daemon_begin(struct daemon *d);
void daemon_deinit(struct daemon *d);
/* Ends all sessions in good order, then stops the loop. */
void daemon_stop(struct daemon *d);
/* A part of the daemon can be served. */
void daemon_ready(struct daemon *d);
/* Has all sessions' consumers write out what there is; b, if there is one, waits for them. */
void daemon_flush(struct daemon *d, struct barrier *b);
/* A session has gone. */
void daemon_session_ended(struct daemon *d);
/* Brings the state page up to date: before any reply that says a session is active. */
void daemon_publish(struct daemon *d);
/* Never 0: that is QUERY_ALL, and INIT's answer. */
uint32_t daemon_next_cookie(struct daemon *d);
uint32_t daemon_next_number(struct daemon *d);

#endif
