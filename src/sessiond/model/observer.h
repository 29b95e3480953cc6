/* SPDX-License-Identifier: MIT */
/*
 * Observers get the changes of sessions: the journal writes them, the peers act on them, the daemon
 * publishes them. So the model does not depend on these parts. An observer has functions for the
 * changes that it needs. It must not change the session itself, unless a comment here permits it.
 */
#ifndef SESSIOND_MODEL_OBSERVER_H
#define SESSIOND_MODEL_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"

struct channel;
struct death;
struct event_counts;
struct kernel_event;
struct kernel_set;
struct samples;
struct ky_bytes;
struct process;
struct registry;
struct ring_set;
struct rule;
struct session;
struct set_event;
struct trigger_spec;
struct env;

struct observer {
	struct ky_list node; /* in env->observers */

	/* --- for the journal --- */
	void (*session_made)(struct session *s); /* its consumer is being started */
	void (*session_ended)(
		struct session *s); /* for good: no successor of the daemon is to find it */
	void (*session_selected)(
		struct session *s, uid_t uid, uint64_t when); /* by a user, as current */
	void (*session_tracks)(struct session *s);	      /* others than before */
	void (*schedule_changed)(struct session *s);	      /* of rotations */
	/* It is new, or is freed next. */
	void (*trigger_changed)(struct session *s, const struct trigger_spec *spec, bool removed);
	void (*snapshot_begun)(struct session *s); /* it has a number */
	/* A trigger that keeps the newest snapshots has one more; or, "", the oldest n less. */
	void (*snapshot_kept)(
		struct session *s, const char *trigger, const char *output, uint64_t n);
	void (*consumer_started)(struct session *s);
	/* The consumer is about to get an order to rotate, or to clear. */
	void (*rotation_ordered)(struct session *s);
	void (*chunk_begun)(struct session *s, bool cleared);
	void (*contexts_added)(struct channel *c);
	void (*rule_changed)(
		struct channel *c, const struct rule *r); /* is new, enabled or disabled */
	void (*rule_removed)(struct channel *c, const struct rule *r); /* is freed next */
	void (*registry_added)(struct registry *r);
	/* The text is about to be written to the metadata. */
	void (*gap_added)(const struct registry *r, const char *text);
	/* The stream of a kind of sets is about to be described in the metadata. */
	void (*stream_numbered)(const struct ring_set *kind);
	/* The set has memory, and a stream that is described. Nobody has the set yet. */
	void (*set_numbered)(const struct ring_set *set);
	/* Programs that start later get another set. */
	void (*set_replaced)(const struct ring_set *set);
	/* An event is about to be described there. */
	void (*event_numbered)(const struct ring_set *set, const struct set_event *e);
	/*
	 * The consumer has written a process's set. Of the set's last counts, `kept` events are in
	 * that chunk.
	 */
	void (*set_written)(const struct ring_set *set, const struct event_counts *counts,
		uint64_t chunk, uint64_t kept);

	/* The texts are about to be written to the kernel's metadata. */
	void (*kernel_set_numbered)(const struct kernel_set *set, const char *text);
	void (*kernel_event_numbered)(
		const struct kernel_set *set, const struct kernel_event *e, const char *text);

	/* --- for the journal and the state page --- */
	void (*session_state)(
		struct session *s); /* started, paused, stopped, or is being destroyed */
	void (*channel_changed)(
		struct channel *c); /* is new, enabled or disabled, or has other options */
	void (*rules_changed)(struct channel *c); /* after rule_changed() and rule_removed() */

	/* --- for the quota --- */
	/* The set's rings may grow to *max bytes together, if the observer does not lower that. */
	void (*set_sized)(const struct ring_set *set, uint64_t *max);
	/* The set's memory is to be made: 0; or -EUSERS, and it is not. */
	int (*set_wanted)(struct ring_set *set);
	void (*set_freed)(struct ring_set *set); /* next; or only its memory */

	/* --- for peers --- */
	/* The set has its memory: 0; or -errno, and it is not made. */
	int (*set_prepared)(struct ring_set *set);
	void (*set_made)(struct ring_set *set);
	/* No process records into the set any more: the consumer is to write it out. */
	void (*set_retired)(struct ring_set *set);
	/* Applications that live are to unmap the set. */
	void (*set_withdrawn)(struct ring_set *set);
	/* Applications are to forget the set, which may be freed next. */
	void (*set_closed)(struct ring_set *set);
	/* There was no room for some sets of the channel, and perhaps is now. */
	void (*memory_freed)(struct channel *c);

	/*
	 * An application that records into the session has met conditions of triggers, or may have
	 * done so. at_once: before the application is forgotten. Triggers may begin steps of
	 * sessions.
	 */
	void (*conditions_met)(struct session *s, bool at_once);
	/* A trigger's snapshot begins to copy the rings of the session, or has copied them. */
	void (*copy_begun)(struct session *s);
	void (*copy_ended)(struct session *s);
	/* A process that was connected has exited. Its pidfd is readable. */
	void (*process_ended)(const struct process *p);
	/* A signal ended a program that the session tracks. Triggers may begin steps of it. */
	void (*program_died)(struct session *s, const struct death *d);

	/* The kernel's buffers exist. */
	void (*kernel_set_made)(const struct kernel_set *set);
	/* An event of theirs is in the metadata; the kernel does not record it yet. */
	void (*kernel_event_described)(const struct kernel_set *set, const struct kernel_event *e);
	/* The set records stacks of the kernel from now on. */
	void (*kernel_stacks_wanted)(const struct kernel_set *set);
	/* struct ky_kernel_thread each (abi/kernel.h). */
	void (*kernel_threads_found)(const struct kernel_set *set, const struct ky_bytes *threads);
	/* A part of the set's last state dump. */
	void (*kernel_state_dumped)(const struct kernel_set *set, uint32_t part, bool last,
		const struct ky_bytes *records);

	/* CPU samples are described; their process is known. */
	void (*samples_made)(const struct samples *s);
	void (*samples_begun)(const struct samples *s);

	/* --- for clients and the daemon --- */
	void (*session_settled)(struct session *s); /* a predecessor's was taken over, or lost */
	void (*message_added)(struct env *e);	    /* by a trigger */
	void (*session_freed)(struct session *s);   /* is freed next, and not in env->sessions */
};

/* Calls all observers that want to know this. */
#define OBSERVE(env, change, ...)                                                                  \
	do {                                                                                       \
		struct observer *observer_;                                                        \
		ky_list_foreach (observer_, &(env)->observers, node)                               \
			if (observer_->change)                                                     \
				observer_->change(__VA_ARGS__);                                    \
	} while (0)

#endif
