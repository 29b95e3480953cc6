/* SPDX-License-Identifier: MIT */
/*
 * One stream of a trace: what one ring recorded, in one file, or in several one after the other.
 * Walks packets and records, keeps the clock, counts what was lost, and steps over what is damaged.
 * Used by the reader, which merges many.
 *
 * A stream is always one item ahead: `next` says what comes and when. The body of an event is
 * decoded only when it is its turn. Streams have nothing in common but what nobody changes, so each
 * may be walked by another thread.
 */
#ifndef READER_STREAM_H
#define READER_STREAM_H

#include "reader/decode.h"

struct ky_trace {
	char *dir;    /* owned */
	char *name;   /* owned: hostname and path below what was opened, for messages */
	char *origin; /* owned: "HOST:PROCESS:(PID) ", what of it the metadata tells */
	size_t origin_len;
	bool ignores_uuid; /* no packet has the UUID of the metadata: they are read all the same */
	char *json_origin; /* owned: members "host" and "trace" of each event's object, as far as they are known */
	size_t json_origin_len;
	size_t group; /* the same for all chunks of one trace: less than the number of traces */
	bool is_kymo; /* Kymo recorded it */
	struct ky_tsdl tsdl;
	struct ky_layout layout;
};

/* A stream file. Nothing may shorten it while it is read (that would be SIGBUS). */
struct ky_file {
	struct ky_trace *trace; /* borrowed */
	char *path;		/* owned */
	const uint8_t *data;	/* mapped, or borrowed if is_borrowed */
	uint64_t size;
	bool is_borrowed;
	/* of its first packet */
	struct ky_stream_class *class; /* NULL: no packet could be read */
	bool has_instance;
	uint64_t instance;
	uint64_t begin; /* clock */
	bool is_cut;	/* earlier packets of the stream are missing */
};

/* Scopes whose fields are shown, in this order. */
enum ky_scope {
	KY_SCOPE_PACKET_CONTEXT,
	KY_SCOPE_EVENT_CONTEXT,
	KY_SCOPE_SPECIFIC_CONTEXT,
	KY_SCOPE_FIELDS,
	KY_N_SCOPES,
};

/* Where a scope's values are among an event's. */
struct ky_scope_values {
	const struct ky_node *node; /* NULL: not there, or nothing to show */
	size_t first, n;
};

enum ky_item_kind {
	KY_ITEM_NONE, /* the end */
	KY_ITEM_EVENT,
	KY_ITEM_LOST_EVENTS,
	KY_ITEM_LOST_PACKETS,
	KY_ITEM_DAMAGED, /* records that cannot be read; how many is not known */
};

struct ky_lost {
	uint64_t n;
	int64_t begin_ns, end_ns;
};

struct ky_stream {
	struct ky_file *files; /* owned */
	size_t n_files;
	uint32_t rank;	 /* order among streams of equal times */
	bool spans_only; /* other events are counted, and are no items */
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
	struct ky_decoder d;
	uint64_t record; /* bit at which the next event begins */
	uint64_t clock;	 /* of the next event */
	struct ky_values packet_context;
	bool in_packet;
	bool is_cut;	  /* the file ends before the packet does */
	uint64_t n_slots; /* size of d.slots */
	bool had_packet;  /* the fields below hold */
	bool had_seq, had_discarded;
	uint64_t last_end;	 /* clock at the end of the last packet */
	uint64_t end_clock;	 /* timestamp_end of the current packet; 0: not there */
	uint64_t last_discarded; /* the highest so far */
	uint64_t last_seq;
	/* counts */
	uint64_t *counts; /* of events, by ky_event_class.index; borrowed */
	int64_t first_ns; /* of the events that have a time; if there is a last_class */
	const struct ky_stream_class *last_class;
	uint64_t last_clock;
	uint64_t n_events, n_discarded, n_packets, n_packets_lost;
	uint64_t n_corrupt; /* damaged places that were stepped over */
	bool is_truncated;  /* a file ended within a packet */
	int error;	    /* -ENOMEM */
};

/* Fills in what is known of a file from its first packet; file->trace, data and size are given. */
void ky_file_probe(struct ky_file *f);
/*
 * True if the stream's first records are missing (a ring that was overwritten, a chunk that others precede, files that
 * were removed). *ret_ns is then the time from which its records are there.
 */
bool ky_stream_is_cut(const struct ky_stream *s, int64_t *ret_ns);
/* True if all records of the stream are of one thread at a time. */
bool ky_stream_is_of_thread(const struct ky_stream *s);
/* Goes to the next item. */
void ky_stream_advance(struct ky_stream *s);
/*
 * Decodes the body of the event that is next. values: where its values are added, or NULL; scopes then tells which are
 * whose. -EBADMSG: it is damaged, and the stream has left its packet: advance. Or -ENOMEM.
 */
int ky_stream_decode(
	struct ky_stream *s, struct ky_values *values, struct ky_scope_values scopes[KY_N_SCOPES]);
/* What is missing, if the next item is neither an event nor the end. */
const struct ky_lost *ky_stream_lost(const struct ky_stream *s);
/* The time of the last event that has one; false when none has. */
bool ky_stream_end_ns(const struct ky_stream *s, int64_t *ret_ns);
void ky_stream_deinit(struct ky_stream *s);
void ky_file_deinit(struct ky_file *f);

#endif
