/* SPDX-License-Identifier: MIT */
/*
 * Traces that are written as CTF 1.8. Events are encoded anew: byte-aligned, little-endian, with
 * whole times in nanoseconds, so that any selection of any trace is a valid trace, unless the
 * times of the source go back. Only what readers show is written.
 *
 * A sequence whose length is not a field near it has its length as a hidden number in the event's
 * header (a "slot"; of the packet's context, in the packet's header). A variant whose tag CTF 1.8
 * cannot name is a structure with a sequence for each option, of which one has an element.
 */
#ifndef EXPORT_CTF_H
#define EXPORT_CTF_H

#include "base/buf.h"
#include "base/htab.h"
#include "reader/field.h"

#define KY_CTF_SLOTS_MAX 1024

/* The slot of a sequence, or of an option of a variant. */
struct ky_ctf_slot {
	struct ky_hnode node;
	const struct ky_node *of;
	uint32_t number;
};

/* The name of a member in the output. */
struct ky_ctf_name {
	struct ky_hnode node;
	const struct ky_node *of;
	char text[];
};

/* The metadata of a trace under construction. Zeroed at first. */
struct ky_ctf_metadata {
	const struct ky_trace *trace; /* borrowed */
	struct ky_htab slots;	      /* struct ky_ctf_slot */
	struct ky_htab names;	      /* struct ky_ctf_name: of the members of a trace of CTF 2 */
	uint32_t n_header_slots;      /* in packet headers */
	uint32_t *n_event_slots;      /* owned: in event headers, by stream class */
	bool has_instance;	      /* packet headers have the number of the stream */
	int64_t origin_ns;	      /* time of value 0 of the clock: 0, or before 1970 */
	bool is_approximate;	      /* it has types that CTF 1.8 has not */
	bool is_renamed;	      /* CTF 1.8 cannot have all names */
	const char *why;	      /* why it cannot be written; a type's */
	const char *why_field;	      /* the field with that type */
};

/*
 * Appends the text of the metadata. Returns 0, -ENOMEM, or -EOPNOTSUPP with m->why. The caller
 * calls ky_ctf_metadata_deinit in any case.
 */
int ky_ctf_metadata_put(struct ky_ctf_metadata *m, struct ky_buf *b, const struct ky_trace *trace);
void ky_ctf_metadata_deinit(struct ky_ctf_metadata *m);
/* Returns true for what the metadata describes as a string. */
static inline bool ky_ctf_is_text(const struct ky_node *n)
{
	return n->kind == KY_NODE_STRING || n->is_text;
}

/* Returns the slot of a sequence or an option; -1: it has none. */
int ky_ctf_slot_of(const struct ky_ctf_metadata *m, const struct ky_node *n);

/*
 * Appends the values of a scope. v: the first one. slots: receives the values of slots, by number
 * (KY_CTF_SLOTS_MAX). *n_unused: bits of the last byte that no value has.
 */
void ky_ctf_encode(const struct ky_ctf_metadata *m, struct ky_buf *b, uint32_t *slots,
	unsigned *n_unused, const struct ky_node *scope, const struct ky_value *v,
	const uint8_t *data);

/* True if packets have times: without them, readers do not know when events were lost. */
bool ky_ctf_has_packet_times(const struct ky_stream_class *s);
/* Appends a scope of zeros and empty texts, for packets whose context is not known. */
void ky_ctf_encode_zero(const struct ky_ctf_metadata *m, struct ky_buf *b, unsigned *n_unused,
	const struct ky_node *scope);

#endif
