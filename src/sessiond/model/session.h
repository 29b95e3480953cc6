/* SPDX-License-Identifier: MIT */
/*
 * What the daemon knows: sessions, their channels and rules, the ring sets of each channel and the
 * registries that number events.
 *
 *   session --- channel --- rule
 *          \           \--- ring set (channel, UID, ABI, mode) --- set_event (signature, identifier)
 *           \            \-- ring sets of one process each: memory; all else is that of their `kind`
 *           \-- registry (UID, ABI): one CTF trace, its metadata log
 *           |\- consumer
 *            \- snapshots: each has a consumer too
 *
 * Identifiers count from 0 in each ring set and are never freed while the session lives. A
 * description is in the metadata log before anybody is told its identifier.
 *
 * A session does one thing at a time (session_step); commands that come meanwhile are refused as
 * busy.
 */
#ifndef SESSIOND_MODEL_SESSION_H
#define SESSIOND_MODEL_SESSION_H

#include "base/clock.h"
#include "proto/context.h"
#include "sessiond/peers/barrier.h"
#include "sessiond/peers/consumer.h"
#include "sessiond/model/memory.h"
#include "sessiond/peers/rotation.h"
#include "sessiond/model/rule.h"
#include "sessiond/model/tracker.h"
#include "sessiond/model/unrecorded.h"
#include "sessiond/model/user.h"

#define SESSIONS_MAX	    1024u
#define USER_SESSIONS_MAX   256u	/* of one user but the daemon's own */
#define CHANNELS_MAX	    64u		/* of a session */
#define RULES_MAX	    1024u	/* of a channel */
#define NOTICES_MAX	    64u		/* of a session, kept for `status` */
#define METADATA_MAX	    (64u << 20) /* bytes of one log */
#define DEFAULT_SUBBUF_SIZE (256u << 10)
#define DEFAULT_NUM_SUBBUF  8u
#define THREAD_SUBBUF_SIZE  (64u << 10) /* by default, if each thread has some */
#define DEFAULT_POOL_SIZE   10u
#define DEFAULT_SWITCH_US   1000000u
#define DEFAULT_CHANNEL	    "channel0"
#define ENDED_SETS_MAX	    16u /* of dead processes: kept for snapshots, in overwrite mode */
#define APP_ANSWER_NS	    (100 * KY_NS_PER_MS) /* how long a command waits for programs */
#define CONSUMER_ANSWER_NS                                                                         \
	(25000 * KY_NS_PER_MS) /* how long it waits for one that is at work: clients wait 30 s */

struct daemon;
struct session;

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

/* One CTF trace: the programs of a UID and an ABI in a session. */
struct registry {
	struct ky_list node; /* in session->registries */
	uid_t uid;
	uint32_t abi_bits;
	uint8_t uuid[16];
	int log_fd;
	uint64_t log_size;
	uint32_t n_streams;
	/* while a predecessor's session is taken over */
	uint64_t log_file;	   /* what the log's descriptor must be: an inode's number */
	struct ring_set *last_set; /* that was described last, or an event of which was */
};

/* Who brought a definition first. */
struct definer {
	pid_t pid;
	char name[64];
};

struct set_event {
	struct ky_hnode node; /* in ring_set->events, by name */
	struct event_desc *desc;
	uint32_t id;	     /* KY_MAP_REFUSED: not recorded, but counted */
	uint32_t n_contexts; /* of the channel's, that its records begin with */
	unsigned n_apps;     /* that have it mapped */
	struct definer by;
	/* that had the name before, with another definition; or NULL */
	const struct set_event *rival;
	bool told; /* the log has the conflict with the rival */
};

struct ring_set {
	struct ky_list node; /* in channel->sets */
	struct channel *channel;
	uint32_t number; /* in messages */
	uid_t uid;
	uint32_t abi_bits, mode; /* enum ky_set_mode */
	/* itself; or, if the set is one process's, the set whose events it shares, which has no memory then */
	struct ring_set *kind;
	pid_t pid;	  /* of that process */
	uint32_t process; /* its number in slot words */
	uint64_t image;	  /* what it runs (process.h) */
	uint64_t ended;	  /* it is gone: as the how manieth; 0: it is not */
	bool retiring;	  /* the consumer is to write out what there is, and forget the set */
	bool described;	  /* its stream is in the metadata */
	bool made;	  /* the memory exists; it is made for the first event */
	bool waiting;	  /* it does not, as its user has as much as one may (quota.h) */
	struct registry *registry;
	uint32_t stream_id;
	struct ky_geometry geometry;
	uint32_t pool_size;
	bool named;		 /* each packet tells its thread */
	uint64_t tracefile_size; /* as the channel had them when the set was made */
	uint32_t tracefile_count;
	struct ring_memory memory;
	struct ky_htab events; /* struct set_event */
	uint32_t n_events;
	struct ky_list users; /* struct app_set */
	/* while a predecessor's session is taken over */
	uint64_t rings_file, consumed_file; /* what the descriptors must be: numbers of inodes */
	const struct set_event *last_event; /* that was described last; NULL: none */
	uint64_t uncounted; /* contexts of which was told that programs may not count them */
};

/* Who has a buffer of a channel's. */
enum buffers {
	BUFFERS_CPU, /* but threads have, in programs without restartable sequences */
	BUFFERS_THREAD,
	BUFFERS_PROCESS, /* as BUFFERS_CPU, but no others' events come into them */
};

struct channel {
	struct ky_list node; /* in session->channels */
	struct session *session;
	char *name;
	bool enabled;
	bool separate_conflicts; /* another definition of a known name is another event; else it is refused */
	bool overwrite;	  /* the oldest events make room for new ones: written by snapshots only */
	uint32_t buffers; /* enum buffers */
	uint32_t subbuf_size, num_subbuf;
	uint32_t pool_size; /* buffers for threads that are made ready before these come */
	/* microseconds; what 0 and UINT64_MAX mean, option.c says */
	uint64_t switch_timer_us, read_timer_us, blocking_timeout_us;
	/* of a stream: bytes of a file; files that stay. 0: no limit */
	uint64_t tracefile_size;
	uint32_t tracefile_count;
	struct ky_list rules, sets; /* sets of processes stand before their kind */
	unsigned n_rules;
	uint64_t n_ended;	     /* processes that had a set */
	struct ky_context *contexts; /* owned; only ever more */
	uint32_t n_contexts;
	bool renewed; /* while it recorded: programs record such events in a slower way until the next start */
};

/* Something that the user should be told when asking for the status. */
struct notice {
	struct ky_list node;
	char *text;
};

struct session {
	struct ky_list node; /* in daemon->sessions */
	struct daemon *daemon;
	char *name;
	char *output; /* "": nothing is written */
	/* directory of its buffers (svc/shm-dir.h); NULL and -1: they are memfds */
	char *shm_path;
	int shm_fd;
	bool snapshot; /* all channels are in overwrite mode: output is where snapshots go, and nothing else */
	uid_t uid;
	gid_t gid;
	bool all_uids; /* records programs of all users */
	struct ky_clock_info clock;
	bool started, was_started; /* now; ever */
	uint64_t
		recording_ns; /* since when all programs have recorded; 0: since before this daemon */
	struct unrecorded unrecorded;
	bool paused; /* not started: records nothing until it is resumed, stopped or started */
	enum session_step step;
	struct op *op;		/* done at the end of the step; NULL: nobody waits */
	struct barrier barrier; /* of the step */
	struct op passed;	/* done when it is passed */
	struct ky_job ending;	/* frees the session */
	struct ky_list channels, registries, notices;
	unsigned n_channels, n_notices, n_notices_lost;
	struct tracker trackers[N_TRACKERS];
	struct consumer consumer;
	struct rotation rotation;
	int journal_fd; /* -1: it will not survive the daemon */
	bool doomed;	/* a predecessor was destroying it */
	uint64_t
		unattended_ns; /* for how long no daemon ran, between predecessors and us, in sum */
	struct ky_list snapshots;
	/* that were written; number of the last one that was begun */
	unsigned n_snapshots, last_snapshot;
	char *error; /* what is wrong with the recording; NULL: nothing */
};

/*
 * Makes a session and begins SESSION_CREATING; op is done at its end. Returns 0; or -errno, also of ky_shm_dir_make(), and
 * nothing was made. output: absolute path or "". shm_path: path of the directory for its buffers, or "".
 */
int session_new(struct daemon *d, const char *name, const char *output, const char *shm_path,
	bool snapshot, uid_t uid, gid_t gid, struct op *op);
struct session *session_find(struct daemon *d, const char *name);
/*
 * Begin a step; op (may be NULL) is done at its end, for session_destroy() before the session is freed. -EBUSY: another
 * step goes on; -EALREADY: nothing to do; -ENOTCONN: what is stopped can be neither paused nor resumed.
 */
int session_start(struct session *s, struct op *op);
int session_stop(struct session *s, struct op *op);
/* As stop, but nothing is written out for it. */
int session_pause(struct session *s, struct op *op);
int session_resume(struct session *s, struct op *op);
int session_destroy(struct session *s, struct op *op);
/* The daemon ends before the session could: its consumer writes out the rest on its own, or waits for a successor. */
void session_abandon(struct session *s);
/* A predecessor's session whose consumer is gone too: says so, and frees it. */
void session_lose(struct session *s);
/* A predecessor's session has got all descriptors that its consumer has: it goes on. */
void session_adopt(struct session *s);
/* Replaces the trackers; `trackers` has the old ones then. */
void session_track(struct session *s, struct tracker trackers[N_TRACKERS]);
/* Appends what nobody can have recorded: programs that ran unrecorded, and times without a daemon. Nothing if there is none. */
void session_put_gaps(const struct session *s, struct ky_buf *to);
/* Keeps a line for `status`, and logs it. The same text is kept once. */
void session_notice(struct session *s, const char *fmt, ...) KY_PRINTF(2, 3);
/* message: NULL or "" when all is well again. */
void session_set_error(struct session *s, const char *message);
bool session_is_active(const struct session *s);
/* "started", "paused" or "stopped". */
const char *session_state(const struct session *s);
/* May programs of this UID be recorded? */
bool session_wants_uid(const struct session *s, uid_t uid);

struct registry *registry_find(const struct session *s, uid_t uid, uint32_t abi_bits);
/* As in messages: upper half, lower half. */
void registry_uuid(const struct registry *r, uint64_t ret_uuid[2]);
/* Without a log. NULL without memory. */
struct registry *registry_new(struct session *s, uid_t uid, uint32_t abi_bits);
/* Writes what a predecessor may not have finished writing: the text that it wrote last, at log_size. 0 or -errno. */
int registry_mend(struct registry *r);
/* With the options that a channel has unless told otherwise. NULL without memory. */
struct channel *channel_new(struct session *s, const char *name);
struct channel *channel_free(struct channel *c);    /* NULL */
struct registry *registry_free(struct registry *r); /* NULL */
struct channel *channel_find(const struct session *s, const char *name);
bool channel_is_active(const struct channel *c);
/* Does any program have memory of it? */
bool channel_has_buffers(const struct channel *c);
/*
 * Enables the rules, which end with NULL: those of the same text that the channel has already, or these. Takes all of
 * them out of the array, and frees the others. -EDQUOT: RULES_MAX; then nothing was changed.
 */
int channel_enable_rules(struct channel *c, struct rule **rules);
/* Frees it. */
void channel_remove_rule(struct channel *c, struct rule *r);
/* Does any enabled rule of an enabled channel match? */
bool channel_wants(const struct channel *c, const struct event_desc *d);
/* The filters of which the event has to pass one; their number, 0: it is recorded whatever it holds. */
uint32_t channel_filters(const struct channel *c, const struct event_desc *d,
	const struct filter *ret_filters[RULES_MAX]);
/* Number of different events of the channel that the rule matches; of those that programs have now,
 * or ever had. */
unsigned channel_count_matches(const struct channel *c, const struct rule *r, bool living);

/* The ring set for such programs, made known but not made. NULL without memory. */
struct ring_set *ring_set_get(struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode);
/* That of a message, or NULL. */
struct ring_set *ring_set_find(const struct session *s, uint32_t number);
/* The set of such programs that is one process's own, made known but not made. NULL without memory. */
struct ring_set *ring_set_of_process(
	struct ring_set *kind, pid_t pid, uint32_t process, uint64_t image);
static inline bool ring_set_is_own(const struct ring_set *set)
{
	return set->kind != set;
}
/* Nobody will write the process's set any more: it goes as soon as nobody needs it. */
void ring_set_end(struct ring_set *set);
/* Frees a process's set that was never made, if no connection needs it. */
void ring_set_unuse(struct ring_set *set);
/*
 * Makes memory and metadata, and tells the consumer. Nothing to do the second time. 0, -EDQUOT when its user has as much
 * memory as one may, -EFBIG as ring_set_register, or another -errno.
 */
int ring_set_make(struct ring_set *set);
/*
 * The event in a made set, which `by` brings: its identifier, or KY_MAP_REFUSED when its name means
 * another definition and the channel refuses that. -EFBIG: the metadata is as large as it may be;
 * or another -errno.
 */
int ring_set_register(struct ring_set *set, struct event_desc *d, const struct definer *by,
	struct set_event **ret_event);
/*
 * Gives the events that have fewer contexts than the channel, or that were refused and are not any more, an identifier for
 * what is recorded from now on. 0 or -errno: then the rest stay as they are.
 */
int ring_set_renew(struct ring_set *set);
/* An event that has this identifier and so many contexts already. 0 or -errno. */
int ring_set_restore(struct ring_set *set, struct event_desc *d, const struct definer *by,
	uint32_t id, uint32_t n_contexts);
void ring_set_free(struct ring_set *set);
/* The event of exactly this definition, or NULL. */
struct set_event *ring_set_event(const struct ring_set *set, const struct event_desc *d);

#endif
