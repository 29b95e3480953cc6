/* SPDX-License-Identifier: MIT */
/*
 * A ring set is the memory into which applications of one kind record a channel's events, and the
 * numbers that these events have there.
 *
 * Identifiers count from 0 in each ring set and are never freed while the session lives. A
 * description is in the metadata log before any application gets its identifier.
 */
#ifndef SESSIOND_MODEL_RING_SET_H
#define SESSIOND_MODEL_RING_SET_H

#include "sessiond/model/memory.h"
#include "sessiond/model/registry.h"
#include "sessiond/model/set-event.h"

#define ENDED_SETS_MAX 16u /* of exited processes: kept for snapshots, in overwrite mode */

struct channel;

/* States only advance, and may be skipped; except that SET_WAITING goes back to SET_KNOWN. */
enum set_state {
	SET_KNOWN,   /* its memory is made for the first event */
	SET_WAITING, /* its user has as much memory as one may (quota.h) */
	SET_MADE,
	SET_ENDED,   /* its process has exited; snapshots may need it */
	SET_RETIRED, /* the consumer is to write out what there is, and forget the set */
};

/* The room for rings that the set's programs have. The numbers are those in journals. */
enum ring_room {
	ROOM_TO_GROW,
	ROOM_LITTLE, /* 1 MiB for all rings of the set, which do not grow */
	ROOM_MUCH,   /* 128 MiB for all rings of the set, grown */
};

struct ring_set {
	struct ky_list node;  /* in channel->sets */
	struct ky_list group; /* in channel->kinds, unless it is one process's */
	struct channel *channel;
	uint32_t number; /* in messages */
	uid_t uid;
	uint32_t abi_bits, mode; /* enum ky_set_mode */
	enum ring_room room;
	/*
	 * itself; or, if the set is one process's, the set whose events it shares, which has no
	 * memory then
	 */
	struct ring_set *kind;
	bool replaced;	  /* damaged: only programs that have the set use it */
	bool withdrawn;	  /* from them, too: it is to be retired */
	bool written;	  /* and retired: others need what it describes, or will for a moment */
	bool succeeds;	  /* others: the names of its files have its number */
	pid_t pid;	  /* of that process */
	uint32_t process; /* its number in slot words */
	uint64_t image;	  /* what it runs (process.h) */
	/* order in which its process exited, among those of the channel; 0 while alive */
	uint64_t ended;
	enum set_state state;
	bool described; /* its stream is in the metadata */
	/* offset of the stream's description in the metadata; 0: the stream has no number yet */
	uint64_t described_at;
	struct registry *registry;
	uint32_t stream_id;
	struct ky_geometry geometry;
	uint32_t pool_size;
	bool named;		 /* each packet names its thread */
	uint64_t tracefile_size; /* as the channel had them when the set was made */
	uint32_t tracefile_count;
	struct ring_memory memory;
	uint64_t charged;	 /* to its user (quota.h) */
	bool has_surplus;	 /* it is examined for memory that can be given back (surplus.h) */
	uint64_t *consumed_then; /* of each ring, at the last examination; NULL: there was none */
	struct ky_htab events;	 /* struct set_event */
	uint32_t n_events;
	struct ky_list conflicts; /* struct set_event, oldest first */
	unsigned n_conflicts, n_refused;
	/*
	 * Of a kind, a bit for each number of a trigger (peers/firing.h): its events may fire it;
	 * all events that it had were examined.
	 */
	uint64_t fires, examined;
	struct ky_list users; /* struct app_set (peers/app.h) */
	/* while a predecessor's session is taken over */
	uint64_t rings_file, consumed_file; /* what the descriptors must be: numbers of inodes */
	const struct set_event *last_event; /* the event that was described last; NULL: none */
	struct set_event *last_numbered;    /* the event that got an identifier last */
	uint64_t uncounted; /* contexts that were reported as not countable: a bit each */
};

/* Returns true if rings of CPUs in this channel may grow. */
bool ring_sets_grow(const struct channel *c);
/*
 * Returns the ring set for such applications. Adds a missing one without its memory. Returns NULL
 * if allocation fails.
 */
struct ring_set *ring_set_get(
	struct channel *c, uid_t uid, uint32_t abi_bits, uint32_t mode, enum ring_room room);
/*
 * Leaves a damaged set to the programs that have it: later ones get another one. A set that is one
 * process's stays, and so does one after REPLACED_MAX others.
 */
#define REPLACED_MAX 16u /* of one kind, at a time */
void ring_set_replace(struct ring_set *set);
/* Does so whatever the number of others. */
void ring_set_set_apart(struct ring_set *set);
/*
 * Takes the set from the programs that have it, and retires it: it is freed when it was written.
 */
void ring_set_withdraw(struct ring_set *set);
/*
 * A retired set was written: frees it. If it is the kind of other sets, or the metadata log's last
 * text is its, keeps it, without memory.
 */
void ring_set_forget(struct ring_set *set);
/* Returns the session's ring set of this number, or NULL. */
struct ring_set *ring_set_find(const struct session *s, uint32_t number);
/* Adds one process's own set of this kind, without its memory. Returns NULL if allocation fails. */
struct ring_set *ring_set_of_process(
	struct ring_set *kind, pid_t pid, uint32_t process, uint64_t image);
void ring_set_set_state(struct ring_set *set, enum set_state state);
/* Returns whether the set has memory. */
static inline bool ring_set_is_made(const struct ring_set *set)
{
	return set->state >= SET_MADE && !set->written;
}
static inline bool ring_set_is_own(const struct ring_set *set)
{
	return set->kind != set;
}
/*
 * Retires the set of a process, because nobody will write it any more. It is freed as soon as
 * nobody needs it.
 */
void ring_set_end(struct ring_set *set);
/* Frees a process's set that was never made, if no connection needs it. */
void ring_set_unuse(struct ring_set *set);
/*
 * Makes memory and metadata; observers bring the set to the consumer. Does nothing the second time.
 * Returns 0, -EUSERS if its user has as much memory as one user may have, -EOVERFLOW as
 * ring_set_register, or another -errno. No call on a file or a socket returns these two.
 */
int ring_set_make(struct ring_set *set);
#define DEFINITIONS_MAX 64 /* of one name in the sets of a kind */

/*
 * The event in a made set, which `by` brings: its identifier, or KY_MAP_REFUSED when its name means
 * another definition and the channel refuses that. -EOVERFLOW: the metadata is as large as it may
 * be; -EMLINK: the name has DEFINITIONS_MAX definitions; or another -errno.
 */
int ring_set_register(struct ring_set *set, struct event_desc *d, const struct definer *by,
	struct set_event **ret_event);
/*
 * Gives events new identifiers for their future records. These are the events that have fewer
 * contexts than the channel, and those that were refused and no longer are. Returns 0 or -errno.
 * After an error the rest keep their identifiers.
 */
int ring_set_renew(struct ring_set *set);
/*
 * Registers an event that already has this identifier and this number of contexts. Returns 0 or
 * -errno.
 */
int ring_set_restore(struct ring_set *set, struct event_desc *d, const struct definer *by,
	uint32_t id, uint32_t n_contexts);
/*
 * Completes the metadata that a predecessor may have left unfinished: writes the predecessor's last
 * text again, at log_size. Returns 0 or -errno.
 */
int ring_set_mend(struct registry *r);
void ring_set_free(struct ring_set *set);
/* Returns the event of exactly this definition, or NULL. */
struct set_event *ring_set_event(const struct ring_set *set, const struct event_desc *d);

#endif
