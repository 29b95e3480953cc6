/* SPDX-License-Identifier: MIT */
/*
 * A ring set in the consumer: the two mapped files, and a stream for each ring. The rings are
 * mapped read-only. Memfds are sealed, so nobody can make them shorter. A program may truncate
 * other files (svc/shm-dir.h); the consumer then reads zeros (svc/sigbus.h). For a snapshot, the
 * set is private memory with copies of the rings.
 */
#ifndef CONSUMERD_RING_SET_H
#define CONSUMERD_RING_SET_H

#include "base/list.h"
#include "consumerd/stream.h"
#include "consumerd/trace.h"
#include "proto/consumer.h"

struct ring_set {
	struct ky_list node; /* in the consumer's list */
	uint32_t id;
	struct trace *trace; /* borrowed */
	char *name;	     /* of the stream files */
	struct ky_geometry geometry;
	uint64_t file_size; /* bytes; 0: no limit */
	uint32_t n_files;   /* 0: no limit */
	bool copied;
	void *rings;		/* mapping */
	uint64_t *consumed;	/* mapping */
	struct stream *streams; /* room for geometry.n_rings */
	uint32_t n_streams;	/* in use: of threads' rings, those that some thread has had */
	uint32_t stream_id, instance;
	uint32_t n_quarantined;
	uint64_t n_overwritten, n_left_out; /* of a snapshot */
	int unopened;	  /* 0, or -errno of the next stream, which is tried at each look */
	uint32_t failed;  /* a stream that has a fault now; only if `error` */
	int error;	  /* 0, or -errno of the last round */
	uint64_t fill_ns; /* the time in which the fastest writers fill a ring */
	uint64_t switch_ns, read_ns;	/* 0: never; as often as fill_ns needs it */
	uint64_t flushed_ns, looked_ns; /* the last time of each */
	bool looked, flush;		/* in this round */
	bool damage_reported;		/* to the daemon, which replaces the set */
	bool retiring; /* nobody writes it any more: all of it is due at each look */
};

/*
 * Maps a set that the session daemon sent. When the trace is resumed, continues its files.
 * consumed_fd -1: copies the rings as they are now instead. The descriptors stay the caller's. Logs
 * the reason if it refuses the set.
 */
int ring_set_new(const struct ky_cons_ring_set *m, struct trace *trace, int rings_fd,
	int consumed_fd, struct ring_set **ret_set);
struct ring_set *ring_set_free(struct ring_set *set);
/* Sets how often the set is due. Values above a day count as a day: no timer is longer. */
void ring_set_time(struct ring_set *set, uint64_t switch_us, uint64_t read_us);
/*
 * If the set is due, or flush: fetches all heads and sets `fill_ns`. Returns true if there are
 * records to write.
 */
bool ring_set_look(struct ring_set *set, bool flush, uint64_t now_ns);
/* Returns the time at which the set is due next. */
uint64_t ring_set_next_look(const struct ring_set *set);
/* Writes all records that are due. Sets `error`, and *alive_ns to the time after each stream. */
void ring_set_write(struct ring_set *set, uint64_t now_ns, uint64_t *alive_ns);
/* Returns the bytes of the packets that could be written now and end later than ts. */
uint64_t ring_set_size_after(const struct ring_set *set, uint64_t ts);
/* Leaves out the packets that end at ts or before. */
void ring_set_leave_out(struct ring_set *set, uint64_t ts);
/* Counts the records that could not be written. */
void ring_set_give_up(struct ring_set *set);
/* Returns true if the present chunk has a packet of the set. */
bool ring_set_has_packets(const struct ring_set *set);
/* Prepares a chunk; drop: without the records that were published before the last look. */
void ring_set_prepare(struct ring_set *set, uint64_t chunk, bool drop);
/* Enters the chunk that its trace has begun. */
void ring_set_enter(struct ring_set *set);
/* Returns true if a program has damaged the set, and other programs use it. */
bool ring_set_is_spoiled(const struct ring_set *set);
/* Returns how many of the recorded events are in the present chunk. */
uint64_t ring_set_kept(const struct ring_set *set);
/* Adds the set's counts to *stats. */
void ring_set_add_stats(const struct ring_set *set, struct ky_cons_stats *stats);

#endif
