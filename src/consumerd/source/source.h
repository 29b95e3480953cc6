/* SPDX-License-Identifier: MIT */
/*
 * A source supplies the records of one stream. It divides them into pieces (ring/drain.h): runs of
 * whole records, in the layout of the file. A stream (stream/stream.h) reads the pieces, and writes
 * them to a sink. A source set holds the sources that the session daemon sends together.
 *
 *   look ──▶ head, lost          what is published now
 *   next ──▶ piece, piece, ...   from a mark that the caller owns; nothing is consumed
 *   take ──▶ `taken` rises       the pieces before the mark are safe: they will not be read again
 *
 * A piece that was described and not taken can be asked for again. A source that can be read only
 * once (a pipe) keeps what it has read until that is taken; `next` then returns false while it has
 * no room for more. So a stream writes first and takes afterwards, and no failure loses a record.
 */
#ifndef CONSUMERD_SOURCE_SOURCE_H
#define CONSUMERD_SOURCE_SOURCE_H

#include "abi/resume.h"
#include "kernel/marker.h"
#include "ring/drain.h"

/* A place between two records of a source. */
struct source_mark {
	uint64_t pos;	/* bytes */
	uint64_t count; /* records before it */
	uint64_t ts;	/* not less than their clocks, not greater than those of later records */
};

struct source {
	const struct source_ops *ops;
	struct source_mark taken;
	/* a buffer of n_blocks; writers wait, or lose events, when it is full and cannot grow */
	uint32_t block_size, n_blocks;
	uint64_t capacity; /* bytes to which it can grow; 0: it does not */
	/* more waits elsewhere, where the room may soon be over: no write waits for a disk */
	bool hurries;
	bool has_owner; /* its pieces name the thread that owns them */
	uint32_t cpu;	/* if they do not */
	/*
	 * Clocks between which all records are known, beyond the first and the last one; 0: not
	 * known. Readers of several streams take the time that these have in common.
	 */
	uint64_t since, until;
	/* memory for the stream's state that outlives the consumer; borrowed */
	struct ky_resume_stream *resume;
	/* of the last look */
	uint64_t head, head_count; /* position behind the published records; their number */
	uint64_t volume;	   /* the head, but without blocks that were skipped */
	uint32_t n_ready;	   /* blocks that writers have left, and that were not taken */
	uint64_t n_lost;	   /* lost events; these counts never decrease */
	uint64_t lost[KY_LOST_REASONS];
	bool settled;  /* all records before the head can be described */
	bool released; /* no writer has it now: all of it is due */
	bool abandoned;
	/*
	 * Another look is needed: there are records behind the head, for which the source has no
	 * room now; or a ring claims what is impossible.
	 */
	bool more;
	/*
	 * of a ring when it was given up, for people: its head word, and its oldest position in
	 * the control block and behind the data
	 */
	uint64_t words[3];
};

/* Nothing has changed since the last look. */
#define SOURCE_IDLE 1

struct source_ops {
	/*
	 * Finds out what is published. flush: also in blocks that writers have not left. written:
	 * all records of the last look were taken. Returns 0, SOURCE_IDLE, or -EBADMSG if the
	 * source makes no sense: then the caller abandons it.
	 */
	int (*look)(struct source *s, bool flush, bool written);
	/*
	 * Describes the next piece behind *at, and moves *at behind that. partial: also from a
	 * block that writers have not left. Returns false if there is none before the head.
	 */
	bool (*next)(struct source *s, struct source_mark *at, bool partial,
		struct ky_drain_piece *ret_piece);
	/* The records before `to` are safe: writers may overwrite them. */
	void (*take)(struct source *s, const struct source_mark *to);
	/*
	 * Continues after an earlier consumer, behind the last record that it stored; NULL: at the
	 * place that it reported to the writers. Returns 0, or -EBADMSG if there is no such place.
	 */
	int (*resume)(struct source *s, const struct source_mark *stored);
	/*
	 * Gives the source up: its records are never read again, only counted as lost. again: an
	 * earlier consumer did it.
	 */
	void (*abandon)(struct source *s, bool again);
	/*
	 * Of a set that is held; NULL: there is none. Returns the bytes of the records later than
	 * ts. Leaves the others out, as whole parts; returns the number of events in them.
	 */
	uint64_t (*size_after)(struct source *s, uint64_t ts);
	uint64_t (*leave_out)(struct source *s, uint64_t ts);
};

struct source_set {
	const struct source_set_ops *ops;
	uint32_t n_max; /* sources */
	uint32_t clock; /* enum ky_clock */
	uint32_t block_size;
	bool own;		/* one process has all of it: its damage concerns nobody else */
	bool copied;		/* no other consumer continues it */
	bool held;		/* of a snapshot: makes no records until the owner clears it */
	bool wakes;		/* writers wake the consumer; so it looks seldom by itself */
	bool ready;		/* they did: set by the owner, until the next look */
	uint64_t n_overwritten; /* events that a copy came too late for */
	bool ended;		/* set by the owner: nobody writes it any more */
	uint64_t until;		/* set by the owner: the clock where the recording ended */
	uint64_t latest;	/* set by the owner: no record of rings is later; 0: than now */
	bool grown; /* a source has taken more memory than n_blocks; the owner clears it */
	struct ky_kmarker marker; /* the last one that was read; the owner clears it */
};

struct source_set_ops {
	/* Returns the number of sources that may hold records: never less than before. */
	uint32_t (*n_used)(const struct source_set *set);
	/* Returns a used source, initialized to its beginning; again, if the caller failed. */
	struct source *(*open)(struct source_set *set, uint32_t i);
	void (*free)(struct source_set *set);
};

/* Returns the mark behind a piece that begins at `at`. */
static inline struct source_mark source_behind(
	const struct source_mark *at, const struct ky_drain_piece *piece)
{
	return (struct source_mark){piece->next, at->count + piece->n_events, piece->end_ts};
}

/* Sets volume and n_ready after a look, for a source whose positions skip nothing. */
static inline void source_measure(struct source *s)
{
	s->volume = s->head;
	s->n_ready = (uint32_t)(s->head / s->block_size - s->taken.pos / s->block_size);
}

/* Returns the number of published records that are not taken. */
static inline uint64_t source_n_left(const struct source *s)
{
	return s->head_count > s->taken.count
		       ? KY_MIN(s->head_count - s->taken.count,
				 (s->head - s->taken.pos) / KY_HEADER_COMPACT)
		       : 0;
}

#endif
