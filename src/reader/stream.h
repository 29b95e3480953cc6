/* SPDX-License-Identifier: MIT */
/*
 * One stream of a trace: the records of one ring, in one file or in several successive files.
 *
 * The stream itself has what is known when the trace is opened. All its readers share it. A walk
 * goes through a stream: it reads packets and records, keeps the clock, counts losses, and skips
 * damaged places. A cursor merges the walks of many streams; each cursor has walks of its own.
 *
 * A walk is always one item ahead: `next` is the kind of the next item, next_ns its time. The body
 * of an event is decoded only when its turn comes. Events that no reader wants are skipped.
 */
#ifndef READER_STREAM_H
#define READER_STREAM_H

#include "reader/decode.h"
#include "reader/file.h"

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
	int64_t end_ns; /* of the last packet, if there is a place */
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
	/* between these clocks, packets overlap or go back in time; disorder_end is 0: nowhere */
	uint64_t disorder_begin, disorder_end;
};

/* Scopes whose fields are shown, in this order. */
enum ky_scope {
	KY_SCOPE_PACKET_CONTEXT,
	KY_SCOPE_EVENT_CONTEXT,
	KY_SCOPE_SPECIFIC_CONTEXT,
	KY_SCOPE_FIELDS,
	KY_N_SCOPES,
};

/* The position of a scope's values among an event's. */
struct ky_scope_values {
	const struct ky_node *node; /* NULL: not there, or nothing to show */
	const uint8_t *data;	    /* bytes that the values refer to */
	/* of the scope, which has no values, and of the packet behind it; NULL: it has values */
	const uint8_t *bytes, *bytes_end;
	size_t first, n;
};

enum ky_item_kind {
	KY_ITEM_NONE, /* the end */
	KY_ITEM_EVENT,
	KY_ITEM_LOST_EVENTS,
	KY_ITEM_LOST_PACKETS,
	KY_ITEM_DAMAGED,  /* records that cannot be read; how many is not known */
	KY_ITEM_UNOPENED, /* not an item: the first packet was not read yet; it begins at next_ns */
};

struct ky_lost {
	uint64_t n;
	int64_t begin_ns, end_ns;
};

/*
 * Selects the wanted part of all streams. The walks of a cursor share it, and it does not change
 * while they use it.
 */
struct ky_select {
	/* by ky_event_class.index: 0: skipped; NULL: all are wanted; borrowed */
	const uint8_t *wanted;
	/* by rank - 1, of the first n_streams: 1: the stream is read; NULL: all are; borrowed */
	const uint8_t *streams;
	size_t n_streams;
	int64_t from_ns, to_ns; /* events of other times are skipped */
	/*
	 * A slice of the records, whatever their times: those from the first one at or after
	 * slice_begin_ns, in the order of each stream, to the last one before slice_end_ns.
	 * Neighbouring slices have no record in common and miss none.
	 */
	bool has_slice_begin, has_slice_end;
	int64_t slice_begin_ns, slice_end_ns;
};

#define KY_SELECT_ALL ((struct ky_select){.from_ns = INT64_MIN, .to_ns = INT64_MAX})

struct ky_walk {
	const struct ky_stream *stream; /* borrowed */
	const struct ky_select *select; /* borrowed */
	struct ky_packets *packets;	/* borrowed: the pool */
	/* what comes next */
	enum ky_item_kind next;
	int64_t next_ns; /* 0 without a clock */
	struct ky_event_class *event;
	struct ky_lost lost_events, lost_packets; /* n is 0 when there is nothing to report */
	struct ky_lost damage;			  /* n: damaged places; likewise */
	bool is_damaged; /* damage began; it lasts until the next packet begins */
	/* where we are */
	size_t file;	 /* index of the current file */
	uint64_t offset; /* of the next packet, bytes */
	struct ky_stream_class *class;
	struct ky_packet *packet; /* owned: the bytes that d reads; NULL: none */
	uint64_t packet_offset;	  /* of the current packet in its file */
	uint64_t window;	  /* bytes of the packet before those in the buffer */
	uint64_t content_bits;	  /* of the current packet, as far as the file goes */
	struct ky_decoder d;	  /* bits count from the buffer's first byte */
	uint64_t record;	  /* bit at which the next event begins */
	uint64_t body;		  /* bit at which its body begins */
	uint64_t clock;		  /* of the next event */
	uint64_t clock_before;	  /* of the event before it */
	struct ky_values packet_context;
	bool in_packet;
	bool is_ended;	   /* what follows is not wanted */
	bool is_cut;	   /* the file ends before the packet does */
	bool is_wide;	   /* the heads of this file are long, or it is damaged */
	bool before_slice; /* the slice has not begun yet */
	bool is_limited;   /* there are limits of time */
	bool met_end;	   /* the place `end` was passed */
	bool in_range;	   /* the current event is in the slice and in the range of time */
	bool had_event;	   /* at_ns holds */
	int64_t at_ns;	   /* of the last event, in the range or not */
	uint64_t n_slots;  /* size of d.slots */
	bool had_packet;   /* the fields below hold */
	bool had_seq, had_discarded;
	uint64_t last_end;	 /* clock at the end of the last packet */
	uint64_t end_clock;	 /* timestamp_end of the current packet; 0: not there */
	uint64_t last_discarded; /* the highest so far */
	uint64_t last_seq;
	uint64_t last_size; /* bytes of the last packet */
	/* borrowed: the first place from which on the slice may end; NULL: it does not */
	const struct ky_place *end;
	/* counts */
	uint64_t *counts; /* of events, by ky_event_class.index; borrowed */
	/* of the events that have a time: the class of the last one, and the clocks' range */
	const struct ky_stream_class *last_class;
	uint64_t min_clock, max_clock;
	uint64_t n_events, n_discarded, n_packets, n_packets_lost;
	uint64_t n_corrupt; /* damaged places that were stepped over */
	bool is_truncated;  /* a file ended within a packet */
	/* damage, or times that are in no order: slices may not give what the whole does */
	bool is_doubtful;
	/* of the current file: 0, -ENODATA: it became shorter, or why it cannot be read */
	int file_error;
	int read_error;	   /* the first of all files */
	size_t n_budgets;  /* files that have got their d.n_empty and n_reread */
	uint64_t n_reread; /* bytes that may still be read again: of records and bad heads */
	int error;	   /* -ENOMEM */
};

/* Returns the value of a role that was met, or other. */
static inline uint64_t ky_role_or(const struct ky_decoder *d, enum ky_role role, uint64_t other)
{
	return d->have & 1u << role ? d->role[role] : other;
}

/* Reads n bytes of the file at offset. Returns the number of bytes read, or a negative errno. */
ssize_t ky_file_read(struct ky_file *f, void *to, size_t n, uint64_t offset);
/* Fills in the properties of a file from its first packet. data: the file's first n bytes. */
void ky_file_probe(struct ky_file *f, const uint8_t *data, size_t n);
void ky_file_deinit(struct ky_file *f);

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

/*
 * Initializes a walk before the first item; call ky_walk_advance. Borrows counts, packets, select.
 */
void ky_walk_init(struct ky_walk *w, const struct ky_stream *s, const struct ky_select *select,
	struct ky_packets *packets, uint64_t *counts);
void ky_walk_deinit(struct ky_walk *w);
/*
 * Decodes the head of the packet at the offset of a file. w->d is then behind the head. For walks
 * that do not advance. Returns 0, -EBADMSG or -ENOMEM.
 */
int ky_walk_peek(struct ky_walk *w, size_t file, uint64_t offset, struct ky_packet_head *ret_head);
/* Goes to the next item. May be called again at the end of the stream when the stream has grown. */
void ky_walk_advance(struct ky_walk *w);
/*
 * Continues after the reader was refreshed. If the description of the trace was replaced, reads the
 * head of the current packet and that of the current record with the new one.
 */
void ky_walk_refresh(struct ky_walk *w);
/*
 * Decodes the body of the next event. values: receives its values, and scopes which values belong
 * to which scope; may be NULL. steps: values are not needed of scopes that are printed from their
 * bytes. Returns 0, -ENOMEM, or -EBADMSG if the event is damaged: then the
 * walk has left the packet, and the caller advances.
 */
int ky_walk_decode(struct ky_walk *w, struct ky_values *values,
	struct ky_scope_values scopes[KY_N_SCOPES], bool steps);
/* Returns the missing records, if the next item is neither an event nor the end. */
const struct ky_lost *ky_walk_lost(const struct ky_walk *w);
/* Gets the earliest and the latest time of the events. Returns false if none has a time. */
bool ky_walk_times(const struct ky_walk *w, int64_t *ret_begin_ns, int64_t *ret_end_ns);

#endif
