/* SPDX-License-Identifier: MIT */
/*
 * One stream of a trace: the records of one ring, in one file or in several successive files. It
 * has what is known when the trace is opened, and all its readers share it; walks (reader/walk.h)
 * go through it. Here are the heads of its packets, too.
 */
#ifndef READER_STREAM_H
#define READER_STREAM_H

#include "reader/decode.h"
#include "reader/file.h"
#include "reader/losses.h"

#define KY_PACKET_MAGIC 0xc1fc1fc1u /* of CTF, before each packet */

/* Identifies a file, whatever its path. */
struct ky_inode {
	uint64_t device, number;
};

struct ky_trace {
	char *dir;	  /* owned */
	char *name;	  /* owned: hostname and path below what was opened, for messages */
	const char *host; /* borrowed: of the metadata, or "" */
	char *origin;	  /* owned: "HOST:PROCESS:(PID) ", as far as the metadata has it */
	size_t origin_len;
	bool is_chunk;	   /* another directory has a part of the same trace */
	bool ignores_uuid; /* no packet has the UUID of the metadata: they are read all the same */
	/* owned: members "host" and "trace" of each event's object, as far as they are known */
	char *json_origin;
	size_t json_origin_len;
	size_t group; /* the same for all chunks of one session: less than the number of traces */
	bool is_kymo; /* Kymo recorded it */
	struct ky_tsdl tsdl;
	struct ky_layout layout;
	uint64_t metadata_size; /* bytes of the file when it was read */
	struct ky_inode inode;	/* of that file */
	uint64_t n_numbered;	/* streams without a number of their own */
	bool is_numbered;	/* its classes of events are */
	struct ky_outdated *outdated;
};

/* A description that a longer one replaced. Cursors may refer to it until the reader closes. */
struct ky_outdated {
	struct ky_outdated *next; /* owned */
	struct ky_tsdl tsdl;
	struct ky_layout layout;
};

/* The reason why there is no packet at a place. */
enum ky_head_fault {
	KY_HEAD_UNREADABLE, /* the head is cut off, or contradicts itself */
	KY_HEAD_MAGIC,
	KY_HEAD_UUID,
	KY_HEAD_CLASS, /* the metadata has no such stream class */
};

/* A stream file. Its bytes are read from memory, or by place from the file at path. */
struct ky_file {
	struct ky_trace *trace; /* borrowed */
	char *path;		/* owned */
	const uint8_t *data;	/* borrowed, or NULL: in the file */
	uint64_t size;		/* bytes that are read */
	uint64_t size_on_disk;	/* at least size, when it was looked at last */
	struct ky_inode inode;	/* a rotation moves files while they are read */
	struct ky_files *files; /* borrowed: the pool */
	struct ky_handle handle;
	/* of its first packet */
	struct ky_stream_class *class; /* NULL: it could not be read, for this reason: */
	enum ky_head_fault fault;
	bool has_instance;
	uint64_t instance;
	uint64_t begin;	   /* clock */
	uint64_t position; /* of its first record in the ring, if Kymo recorded it */
	bool is_cut;	   /* earlier packets of the stream are not in this trace */
	uint64_t first;	   /* offset of the first packet that earlier files do not have */
};

/* A packet at which a walk may begin: what is known of the stream before it. */
struct ky_place {
	uint64_t begin;	    /* clock; never less than that of the place before */
	uint64_t offset;    /* bytes in the file */
	uint64_t before;    /* offset of the packet before, if has_before */
	uint64_t discarded; /* the highest count of discarded events before */
	uint32_t file;
	uint32_t before_file;
	bool has_before;
};

struct ky_stream {
	struct ky_file *files; /* owned */
	size_t n_files;
	uint32_t rank;	/* order among streams of equal times; from 1 */
	bool continues; /* its first record follows the last one of a stream in another chunk */
	/* The index, once it was asked for (reader/index.h). */
	struct ky_place *places; /* owned */
	size_t n_places;
	uint64_t n_packets, n_discarded;
	struct ky_counter discarded; /* of the last packet */
	int64_t end_ns;		     /* of the last packet, if there is a place */
	/* of the first event, once it was asked for, if heads of packets have no beginning */
	int64_t begin_ns;
	bool has_begin;
	uint64_t n_bytes;
	bool has_index;
	/* where the index goes on when the stream has grown */
	uint32_t index_file;
	uint64_t index_offset;
	size_t max_places; /* elements of places */
	bool has_packets;  /* the last packet: */
	uint32_t last_file;
	uint64_t last_offset;
	uint64_t last_begin, last_end; /* the highest clocks so far */
	/* up to here the times of events were read: the next place, its clock, and n_packets */
	size_t times_file;
	uint64_t times_offset, times_clock, times_packets;
	/* between these clocks, packets overlap or go back in time; disorder_end is 0: nowhere */
	uint64_t disorder_begin, disorder_end;
};

/* Reads n bytes of the file at offset. Returns the number of bytes read, or a negative errno. */
ssize_t ky_file_read(struct ky_file *f, void *to, size_t n, uint64_t offset);
/* Fills in the properties of a file from its first packet. data: the file's first n bytes. */
void ky_file_probe(struct ky_file *f, const uint8_t *data, size_t n);

/*
 * Returns true if the stream's first records are missing (a ring that was overwritten, a chunk
 * whose predecessor is not there, files that were removed). *ret_ns is then the time from which it
 * is complete.
 */
bool ky_stream_is_cut(const struct ky_stream *s, int64_t *ret_ns);
/* Returns true if all records of the stream are of one thread at a time. */
bool ky_stream_is_of_thread(const struct ky_stream *s);
void ky_stream_deinit(struct ky_stream *s);

/* The contents of a packet's head. d: its state behind the head. */
struct ky_packet_head {
	struct ky_stream_class *class;
	uint64_t content_bits, packet_bits;
	enum ky_head_fault fault; /* if the head could not be decoded */
};
/*
 * Decodes the head of a packet. d->data has its first bytes (d->end bits); the file has file_bits
 * from there on. The caller has set d->slots and d->n_empty. Returns 0, -EBADMSG or -ENOMEM.
 */
int ky_packet_head_decode(struct ky_packet_head *ret, struct ky_decoder *d, const struct ky_file *f,
	uint64_t file_bits, struct ky_values *context);

/*
 * Returns the position in the ring at which the packet begins whose head was decoded. 0: the
 * packet does not contain it.
 */
uint64_t ky_packet_position(
	const struct ky_trace *t, const struct ky_stream_class *c, const struct ky_decoder *d);

/* Returns the time at which a place of the stream begins. */
static inline int64_t ky_place_ns(const struct ky_stream *s, const struct ky_place *p)
{
	return ky_trace_clock_ns(s->files[0].class->clock, p->begin);
}

#endif
