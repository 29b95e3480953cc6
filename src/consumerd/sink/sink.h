/* SPDX-License-Identifier: MIT */
/*
 * A sink receives the packets of a session. It writes files (files.h) or nothing (null_sink). It
 * has one sink_trace for each CTF trace of the session, and that has one sink_stream for each
 * stream.
 *
 * A chunk is the part of a session between two rotations. In a chunk, a stream has one file or, if
 * their size is limited, several, numbered from 0. Streams (stream/stream.h) decide when the next
 * file begins, because that is part of the state from which a successor continues.
 *
 * Invariant: packets are appended whole or not at all. So after a failure the caller may append the
 * same packets again, or others.
 */
#ifndef CONSUMERD_SINK_SINK_H
#define CONSUMERD_SINK_SINK_H

#include "ctf/packet.h"
#include "ctf/watermark.h"

struct sink {
	const struct sink_ops *ops;
};

struct sink_trace {
	const struct sink_ops *ops;
};

struct sink_stream {
	const struct sink_ops *ops;
	uint64_t size, n_packets; /* of the present file */
	uint64_t max_size;	  /* of a file, in bytes; 0: no limit, and one file in each chunk */
	uint32_t max_files;	  /* in a chunk; 0: no limit */
};

#define SINK_BATCH 8 /* packets, at most, in one append */

struct sink_packet {
	struct ky_ctf_packet header; /* finished */
	const uint8_t *data;	     /* records; borrowed, not NULL */
	uint32_t len;		     /* their bytes; without the padding */
};

/* The name of a stream and its limits. `base` is borrowed until the stream is closed. */
struct sink_name {
	const char *base; /* of the channel */
	uint32_t n;	  /* in the channel */
	uint64_t max_size;
	uint32_t max_files;
};

/* The sink has no packets to continue from. */
#define SINK_NO_POSITION 1

typedef void sink_visit_fn(void *context, const struct ky_ctf_packet *p);

/* Functions that return int return 0 or -errno, unless they say more. */
struct sink_ops {
	bool keeps; /* packets can be read later; otherwise they are only counted */

	/*
	 * Moves the present chunk to its archive, in one step; "": sets it apart for discard().
	 * -ENOENT: there is none. has_chunk: it was not moved.
	 */
	int (*archive)(struct sink *sink, const char *archive);
	int (*discard)(struct sink *sink);
	bool (*has_chunk)(const struct sink *sink);
	/* Stores how far the session can be read now. */
	int (*watermark)(struct sink *sink, const struct ky_watermark *watermark);
	void (*close)(struct sink *sink);

	/* resume: an earlier consumer may have written it. */
	int (*open_trace)(
		struct sink *sink, const char *dir, bool resume, struct sink_trace **ret_trace);
	/* Begins the files of the next chunk, after the present one was moved. */
	void (*open_chunk)(struct sink_trace *trace);
	/*
	 * Writes metadata at this place, behind or over what is there. After an error, the caller
	 * cuts it back to what was complete.
	 */
	int (*metadata)(struct sink_trace *trace, uint64_t at, const char *text, size_t len);
	void (*cut_metadata)(struct sink_trace *trace, uint64_t size);
	/*
	 * Writes into a file of the readers' index, at this place, or SINK_BEHIND what is there:
	 * then it is unchanged after an error.
	 */
	int (*index)(struct sink_trace *trace, const char *name, uint64_t at, const char *text,
		size_t len);
#define SINK_BEHIND UINT64_MAX
	void (*close_trace)(struct sink_trace *trace);

	int (*open_stream)(struct sink_trace *trace, const struct sink_name *name,
		struct sink_stream **ret_stream);
	/* Completes the present file. The next packet begins file `number`. */
	void (*begin_file)(struct sink_stream *s, uint64_t number);
	/*
	 * Finds what an earlier consumer wrote into the present file, cuts it behind its last whole
	 * packet, and calls visit for each packet. `like` is a packet of the same stream. Returns
	 * SINK_NO_POSITION if the sink cannot know; -EBADMSG for a file of another stream.
	 */
	int (*resume)(struct sink_stream *s, const struct ky_ctf_packet *like, sink_visit_fn *visit,
		void *context);
	/*
	 * Appends up to SINK_BATCH packets. spare_ns: the time that nobody waits for it; 0: the
	 * fastest way.
	 */
	int (*append)(struct sink_stream *s, const struct sink_packet *packets, unsigned int n,
		uint64_t spare_ns);
	/* Counts the events in another file of the present chunk; removes it. */
	int (*count)(struct sink_stream *s, uint64_t number, uint64_t *ret_n_events);
	void (*remove)(struct sink_stream *s, uint64_t number);
	/* Moves another file to where no reader searches. A second call does nothing. */
	int (*set_apart)(struct sink_stream *s, uint64_t number);
	void (*close_stream)(struct sink_stream *s);
};

extern struct sink null_sink;

/*
 * Returns the padding, in bytes, with which a packet at `at` with len bytes of records ends with a
 * page. A whole block is padded, because only pages can bypass the page cache.
 */
static inline uint32_t sink_padding(uint64_t at, uint32_t len)
{
	uint64_t end = at + sizeof(struct ky_ctf_packet) + len;

	return (uint32_t)(ky_align_up(end, KY_CTF_PAGE) - end);
}

#endif
