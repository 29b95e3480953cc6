/* SPDX-License-Identifier: MIT */
/*
 * The model: sessions, their channels and rules, the ring sets of each channel and the registries
 * that number events.
 *
 *   session --- channel --- rule
 *          \           \--- ring set (channel, UID, ABI, mode) -- set_event (signature, identifier)
 *           \            \-- ring sets of one process each: memory; the rest is in their `kind`
 *            \-- registry (UID, ABI): one CTF trace, its metadata log
 *
 * The model knows no socket, no message and no journal: other parts observe its changes
 * (observer.h). peers/recording.h describes the tasks of applications and consumers in a session.
 *
 * A session does one thing at a time (session_step). Commands that arrive meanwhile are refused as
 * busy.
 */
#ifndef SESSIOND_MODEL_SESSION_H
#define SESSIOND_MODEL_SESSION_H

#include "base/clock.h"
#include "sessiond/model/env.h"
#include "sessiond/model/tracker.h"
#include "sessiond/model/unrecorded.h"

#define SESSIONS_MAX	  1024u
#define USER_SESSIONS_MAX 256u	/* of one user but the daemon's own */
#define CHANNELS_MAX	  64u	/* of a session */
#define NOTICES_MAX	  1024u /* of a session, kept for `status` */
#define USER_NOTICES_MAX  64u	/* of these, caused by programs of one user */

enum session_step {
	SESSION_IDLE,
	SESSION_CREATING, /* the consumer makes the directory, or comes from a predecessor */
	SESSION_STARTING, /* programs acknowledge START */
	SESSION_PAUSING,  /* programs acknowledge STOP */
	SESSION_STOPPING, /* likewise */
	SESSION_FLUSHING, /* the consumer writes out the rest */
	SESSION_DROPPING, /* programs acknowledge DROP */
	SESSION_QUITTING, /* the consumer ends */
};

/* A line that `status` shows to the user. */
struct notice {
	struct ky_list node;
	uid_t uid; /* its programs caused the notice */
	char *text;
};

struct samples;

enum session_state {
	SESSION_STOPPED,
	SESSION_STARTED,
	SESSION_PAUSED, /* records nothing until it is resumed, stopped or started */
	SESSION_ENDING, /* is being destroyed */
};

struct session {
	struct ky_list node; /* in env->sessions */
	struct env *env;
	uint32_t number; /* of this session in messages; never 0 */
	char *name;
	char *output; /* "": nothing is written */
	/* directory of its buffers (svc/shm-dir.h); NULL and -1: they are memfds */
	char *shm_path;
	int shm_fd;
	bool absolute_clock; /* to read the trace together with those of other boots and hosts */
	bool snapshot;	     /* all channels are in overwrite mode: output is only for snapshots */
	uint64_t seconds;    /* for which they are to hold events (seconds.h); 0: no matter */
	uint64_t switch_us;  /* switch timer of channels that are made; 0: DEFAULT_SWITCH_US */
	uid_t uid;
	gid_t gid;
	bool all_uids; /* records programs of all users */
	struct ky_clock_info clock;
	const void *bound; /* the client with whose connection it ends; NULL: none */
	/*
	 * the connection has ended, perhaps with a predecessor: it is destroyed when no step is in
	 * progress
	 */
	bool abandoned;
	enum session_state state;
	bool was_started;
	/* since when all applications have recorded; 0: since before this daemon */
	uint64_t recording_ns;
	struct unrecorded unrecorded;
	uint64_t
		unattended_ns; /* for how long no daemon ran, between predecessors and us, in sum */
	enum session_step step;
	struct ky_list channels, registries, notices;
	unsigned n_channels, n_notices, n_notices_lost;
	uint64_t n_desc_bytes; /* sum of n_session_bytes of all registries */
	struct tracker trackers[N_TRACKERS];
	int journal_fd; /* -1: it will not survive the daemon */
	/* bytes in the journal now, and after it was compacted last */
	uint64_t journal_bytes, journal_compact_bytes;
	int journal_error; /* why it would not survive the daemon: -errno; 0: another reason */
	/* While the journal is suspended (journal.c), its file, or -1, and the lines it lacks. */
	bool journal_suspended;
	int journal_kept_fd;
	struct ky_buf journal_rest;
	struct samples *samples; /* kernel/samples.h; NULL: none */
	char *error;		 /* what is wrong with the recording; NULL: nothing */
};

struct session_spec {
	const char *name, *output; /* an absolute path, or "" */
	const char *shm_path;	   /* likewise: of the directory for its buffers */
	bool snapshot, absolute_clock;
	uint64_t seconds, switch_us;
	const char *clock; /* of another session, as text; NULL: measured */
	const void *bound; /* the client with whose connection it ends; NULL: none */
	uid_t uid;
	gid_t gid;
};

/* A session's clock as text, for another session of this machine: "FREQUENCY SECONDS CYCLES". */
#define SESSION_CLOCK_MAX 72
void session_clock_put(const struct ky_clock_info *info, char text[SESSION_CLOCK_MAX]);
/* Sets what the text says. Returns 0, or -EINVAL if it makes no sense for info->clock. */
int session_clock_take(struct ky_clock_info *info, const char *text);
/*
 * Fills in *s, which must be zeroed. Returns 0, -EINVAL if spec->clock makes no sense, or -ENOMEM.
 * In any case the caller calls
 * session_deinit() in the end, after session_clear() (contents.h).
 */
int session_init(struct session *s, struct env *e, const struct session_spec *spec);
void session_deinit(struct session *s);
/* Puts it into env->sessions, or takes it out: its name is free then. */
void session_list(struct session *s);
void session_unlist(struct session *s);
struct session *session_find(const struct env *e, const char *name);
void session_set_state(struct session *s, enum session_state state);
/* Replaces the trackers; `trackers` has the old ones then. */
void session_track(struct session *s, struct tracker trackers[N_TRACKERS]);
/*
 * Appends the gaps, which nobody can have recorded: applications that ran unrecorded, and times
 * without a daemon. Appends nothing if there is none.
 */
void session_put_gaps(const struct session *s, struct ky_buf *to);
/* Appends the second part of that. */
void session_put_unattended(const struct session *s, struct ky_buf *to);
/* Keeps a line for `status`, and logs it. The same text is kept once. */
void session_notice(struct session *s, const char *fmt, ...) KY_PRINTF(2, 3);
/* Sets the session's error. message: NULL or "" if the fault is over. */
void session_set_error(struct session *s, const char *message);
/* Returns "started", "paused" or "stopped". */
const char *session_state_name(const struct session *s);
/* Returns whether the session may record applications of this UID. */
bool session_wants_uid(const struct session *s, uid_t uid);

#endif
