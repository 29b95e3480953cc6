/* SPDX-License-Identifier: MIT */
/* The state of a walk (reader/walk.h), and what selects the items that it finds. */
#ifndef READER_WALK_STATE_H
#define READER_WALK_STATE_H

#include "reader/losses.h"
#include "reader/met-packets.h"
#include "reader/stream.h"

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
	/* the event or loss that is next */
	enum ky_item_kind next;
	int64_t next_ns; /* 0 without a clock */
	struct ky_event_class *event;
	struct ky_losses losses;
	/* the position in the stream */
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
	bool is_ended;	    /* what follows is not wanted */
	bool is_cut;	    /* the file ends before the packet does */
	bool is_wide;	    /* the heads of this file are long, or it is damaged */
	bool before_slice;  /* the slice has not begun yet */
	bool is_limited;    /* there are limits of time */
	bool met_end;	    /* the place `end` was passed */
	bool in_range;	    /* the current event is in the slice and in the range of time */
	bool had_event;	    /* at_ns holds */
	int64_t at_ns;	    /* of the last event, in the range or not */
	uint64_t n_slots;   /* size of d.slots */
	uint64_t end_clock; /* timestamp_end of the current packet; 0: not there */
	uint64_t last_size; /* bytes of the last packet */
	/* the end of the contents of the last packet with a valid head, and the packet's file */
	uint64_t contents_end;
	size_t contents_file;
	/* borrowed: the first place from which on the slice may end; NULL: it does not */
	const struct ky_place *end;
	/* counts */
	uint64_t *counts; /* of events, by ky_event_class.index; borrowed */
	/* of the events that have a time: the class of the last one, and the clocks' range */
	const struct ky_stream_class *last_class;
	uint64_t min_clock, max_clock;
	uint64_t n_events, n_packets;
	uint64_t n_corrupt;  /* damaged places that were stepped over */
	uint64_t n_mended;   /* packets whose begin was damaged */
	uint64_t n_repeated; /* packets that were met before */
	struct ky_met_packets met;
	uint64_t n_back;   /* places where events are earlier than those before */
	bool is_back;	   /* the last event was earlier than another one before */
	bool is_truncated; /* a file ended within a packet */
	/* damage, or times that are in no order: slices may not give what the whole does */
	bool is_doubtful;
	/* of the current file: 0, -ENODATA: it became shorter, or why it cannot be read */
	int file_error;
	int read_error;	   /* the first of all files */
	size_t n_budgets;  /* files that have got their d.n_empty and n_reread */
	uint64_t n_reread; /* bytes that may still be read again: of records and bad heads */
	int error;	   /* -ENOMEM */
};

#endif
