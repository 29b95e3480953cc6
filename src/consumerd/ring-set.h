/* SPDX-License-Identifier: MIT */
/*
 * A ring set as the consumer has it: the two files mapped, and a stream for each ring. The rings
 * are mapped read-only. Memfds are sealed, and nobody can make them shorter; under other files (svc/shm-dir.h) a program may, and
 * then finds zeros here. For a snapshot, the set is private memory with copies of the rings.
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
	int unopened;	  /* 0, or -errno of the stream behind these: it is tried at each look */
	uint32_t failed;  /* a stream whose fault stands; only if `error` */
	int error;	  /* 0, or -errno of the last round */
	uint64_t fill_ns; /* of the ring that is filled fastest */
	uint64_t switch_ns, read_ns;	/* 0: never; as often as fill_ns needs it */
	uint64_t flushed_ns, looked_ns; /* when that was done last */
	bool looked, flush;		/* in this round */
	bool retiring; /* nobody writes it any more: all of it is due at each look */
};

/*
 * Maps a set that the session daemon sent and, when the trace is being resumed, goes on in its
 * files. consumed_fd -1: copies the rings as they are now instead. The descriptors stay the caller's. Logs why it
 * refuses.
 */
int ring_set_new(const struct ky_cons_ring_set *m, struct trace *trace, int rings_fd,
	int consumed_fd, struct ring_set **ret_set);
struct ring_set *ring_set_free(struct ring_set *set);
/* How often it has its turn. What was written a day ago is written: no timer is longer. */
void ring_set_time(struct ring_set *set, uint64_t switch_us, uint64_t read_us);
/*
 * If it is its turn, or flush: fetches all heads, sets `fill_ns`, and returns whether something is due to be written.
 */
bool ring_set_look(struct ring_set *set, bool flush, uint64_t now_ns);
/* When its next turn is. */
uint64_t ring_set_next_look(const struct ring_set *set);
/* Writes what is due. Sets `error`. *alive_ns becomes the clock after each stream. */
void ring_set_write(struct ring_set *set, uint64_t now_ns, uint64_t *alive_ns);
/* Bytes of the packets that could be written now and end later than ts. */
uint64_t ring_set_size_after(const struct ring_set *set, uint64_t ts);
/* Leaves out the others. */
void ring_set_leave_out(struct ring_set *set, uint64_t ts);
/* Counts what could not be written. */
void ring_set_give_up(struct ring_set *set);
/* Has the present chunk a packet of it? */
bool ring_set_has_packets(const struct ring_set *set);
/* Makes ready for a chunk; drop: without what was published before the last look. */
void ring_set_prepare(struct ring_set *set, uint64_t chunk, bool drop);
/* That of its trace has begun. */
void ring_set_enter(struct ring_set *set);
/* Of the recorded events: those in the present chunk. */
uint64_t ring_set_kept(const struct ring_set *set);
/* Adds the set's counts to *stats. */
void ring_set_add_stats(const struct ring_set *set, struct ky_cons_stats *stats);

#endif
