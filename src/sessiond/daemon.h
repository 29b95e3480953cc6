/* SPDX-License-Identifier: MIT */
/*
 * The one object that everything hangs on: loop, run directory, sockets, sessions, programs,
 * clients.
 */
#ifndef SESSIOND_DAEMON_H
#define SESSIOND_DAEMON_H

#include "sessiond/control/control.h"
#include "sessiond/kernel/kernel.h"
#include "sessiond/model/op.h"
#include "sessiond/peers/agents.h"
#include "sessiond/peers/collector.h"
#include "sessiond/peers/peers.h"
#include "sessiond/peers/rundir.h"
#include "sessiond/recover.h"
#include "svc/unix.h"

struct daemon_options {
	const char *group;   /* it may control root's daemon; NULL: DEFAULT_GROUP, if it exists */
	const char *pidfile; /* or NULL */
	bool bound;	     /* ends when stdin closes, and its sessions with it */
	bool while_used; /* ends when nobody has been connected for some time, not at a signal */
	bool no_precedence;
	bool take_over;	      /* a daemon that serves here already hands its sessions over */
	const char *sessions; /* directory of those that it makes (preset.h); or NULL */
	bool no_collectd;
	bool allow_commands; /* of triggers */
	const char *without; /* what the collector leaves out, as it wants it; "": nothing */
	/* bytes of buffers and metadata for each user; 0: quota_default() */
	uint64_t user_memory_max;
};

struct daemon {
	struct env env;
	struct peers peers;
	struct collector collector;
	struct agents agents;
	struct kernel kernel;
	struct control control;
	struct daemon_options options;
	struct rundir run;
	uint64_t published_ns; /* time of the last write to the state page */
	struct ky_listener app_listener, control_listener;
	struct ky_watch bound_watch, run_watch;
	struct ky_timer stop_timer, unused_timer, mend_timer;
	bool unused;	   /* the time of unused_timer runs */
	unsigned n_unused; /* looks that have found it unused since then */
	bool was_used;	   /* by a program */
	bool managed;	   /* by a service manager, which restarts it */
	bool making_room;  /* for a successor, once requests are answered */
	struct observer observer;
	struct recovery recovery; /* of a predecessor's sessions */
	struct op served;	  /* when that is done */
	/* Parts that the daemon waits for before it is ready; the last one completes `ready`. */
	unsigned n_unready;
	struct op *ready;
	int error; /* -errno of why it cannot serve, logged */
};

/*
 * Takes the run directory. Returns 0 or -errno, after a logged line. Call daemon_deinit in both
 * cases.
 */
int daemon_init(struct daemon *d, const struct daemon_options *options);
/*
 * Takes over a predecessor's sessions, and serves. op is done when all parts are ready. Returns 0
 * or -errno, after a logged line.
 */
int daemon_begin(struct daemon *d, struct op *op);
void daemon_deinit(struct daemon *d);
/* Ends all sessions in good order, then stops the loop. */
void daemon_stop(struct daemon *d);

#endif
