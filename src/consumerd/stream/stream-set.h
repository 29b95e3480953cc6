/* SPDX-License-Identifier: MIT */
/*
 * The streams of a source set: what the session daemon sends in one RING_SET. They have their name,
 * their timers and their trace in common.
 */
#ifndef CONSUMERD_STREAM_STREAM_SET_H
#define CONSUMERD_STREAM_STREAM_SET_H

#include "base/list.h"
#include "consumerd/stream/stream.h"
#include "consumerd/stream/trace.h"
#include "proto/consumer.h"

struct stream_set {
	struct ky_list node; /* in the consumer's list */
	uint32_t id;
	struct trace *trace;	    /* borrowed */
	struct source_set *sources; /* owned */
	char *name;		    /* of the streams */
	uint64_t file_size;	    /* bytes; 0: no limit */
	uint32_t n_files;	    /* 0: no limit */
	struct stream *streams;	    /* room for sources->n_max */
	uint32_t n_streams;	    /* in use: of threads' rings, those that some thread has had */
	uint32_t stream_id, instance;
	uint32_t n_quarantined;
	bool damaged;	     /* a program has written into the control words of a ring */
	uint64_t n_left_out; /* of a snapshot */
	int unopened;	     /* 0, or -errno of the next stream, which is tried at each look */
	uint32_t failed;     /* a stream that has a fault now; only if `error` */
	int error;	     /* 0, or -errno of the last round */
	uint64_t wait_ns;    /* until the next look; UINT64_MAX: there are no streams */
	uint64_t switch_ns, read_ns;	/* 0: never; as often as wait_ns says */
	uint64_t flushed_ns, looked_ns; /* the last time of each */
	uint64_t complete_clock;	/* all records up to this clock are in the sink */
	uint32_t fullest;      /* thousandths of a source that were full at any look, at most */
	uint32_t n_last_looks; /* since the set has ended, without an error */
	bool looked, flush;    /* in this round */
	bool damage_reported;  /* to the daemon, which replaces the set */
	uint64_t grown_ns;     /* when the daemon last heard that it has grown */
};

/*
 * Makes the streams of a set that the session daemon sent. When the trace is resumed, continues its
 * files; a stream that cannot is given up. A stream whose files cannot be opened now is tried again
 * at each look (`unopened`). Takes `sources`, also on failure. Returns 0 or -ENOMEM.
 */
int stream_set_new(const struct ky_cons_ring_set *m, struct trace *trace,
	struct source_set *sources, struct stream_set **ret_set);
struct stream_set *stream_set_free(struct stream_set *set);
/* Nobody writes the set any more: all of it is due at each look. */
void stream_set_end(struct stream_set *set);
/*
 * The recording has ended: the next flush is the last one. Streams of the kernel reach to this
 * time.
 */
void stream_set_finish(struct stream_set *set);
/* Returns true if all records that this round's look found are written. */
bool stream_set_is_complete(const struct stream_set *set);
/*
 * Returns true if the set has ended, and all of it is written, but for rings that do not settle:
 * stream_set_give_up() quarantines these.
 */
bool stream_set_is_written(const struct stream_set *set);
/* Returns true if a source has records for which it had no room at the last look. */
bool stream_set_has_more(const struct stream_set *set);
/* Sets how often the set is due. Values above a day count as a day: no timer is longer. */
void stream_set_time(struct stream_set *set, uint64_t switch_us, uint64_t read_us);
/*
 * If the set is due, or flush: fetches all heads and sets `wait_ns`. Returns true if there are
 * records to write.
 */
bool stream_set_look(struct stream_set *set, bool flush, uint64_t now_ns);
/* Returns the time at which the set is due next. */
uint64_t stream_set_next_look(const struct stream_set *set);
/* Writes all records that are due. Sets `error`, and *alive_ns to the time after each stream. */
void stream_set_write(struct stream_set *set, uint64_t now_ns, uint64_t *alive_ns);
/* Returns the bytes of the packets that could be written now and end later than ts. */
uint64_t stream_set_size_after(const struct stream_set *set, uint64_t ts);
/* Leaves out the packets that end at ts or before. */
void stream_set_leave_out(struct stream_set *set, uint64_t ts);
/* Counts the records that could not be written. */
void stream_set_give_up(struct stream_set *set);
/* Returns true if the present chunk has a packet of the set. */
bool stream_set_has_packets(const struct stream_set *set);
/* Prepares a chunk; drop: without the records that were published before the last look. */
void stream_set_prepare(struct stream_set *set, uint64_t chunk, bool drop);
/* Enters the chunk that its trace has begun. */
void stream_set_enter(struct stream_set *set);
/* Returns true if a program has damaged the set, and other programs use it. */
bool stream_set_is_spoiled(const struct stream_set *set);
/* Returns how many of the recorded events are in the present chunk. */
uint64_t stream_set_kept(const struct stream_set *set);
/* Adds the set's counts to *stats. */
void stream_set_add_stats(const struct stream_set *set, struct ky_cons_stats *stats);

#endif
