/* SPDX-License-Identifier: MIT */
/*
 * The losses of a stream: counters in the heads of its packets show that events and packets are
 * missing, and damaged places hide records. Pure.
 */
#ifndef READER_LOSSES_H
#define READER_LOSSES_H

#include "reader/decode.h"

enum ky_item_kind {
	KY_ITEM_NONE, /* the end */
	KY_ITEM_EVENT,
	KY_ITEM_LOST_EVENTS,
	KY_ITEM_LOST_PACKETS,
	KY_ITEM_DAMAGED,  /* records that cannot be read; how many is not known */
	KY_ITEM_UNOPENED, /* not an item: the first packet was not read yet; it begins at next_ns */
};

struct ky_loss {
	uint64_t n;
	int64_t begin_ns, end_ns;
};

/* A counter as packets have it. One of fewer than 64 bits wraps. */
struct ky_counter {
	bool is_known;
	uint64_t last; /* the highest so far */
};

struct ky_losses {
	/* to report; n is 0 when there is nothing */
	struct ky_loss events, packets;
	struct ky_loss damage; /* n: damaged places */
	bool is_damaged;       /* damage began; it lasts until the next packet begins */
	/* of the last packet, if there was one with such a field */
	bool had_packet, had_seq;
	uint64_t last_end; /* clock */
	uint64_t last_seq;
	struct ky_counter discarded;
	/* in total */
	uint64_t n_discarded, n_packets_lost;
};

/*
 * Returns by how much a counter of so many bits exceeds the highest count so far; the first count
 * is not a difference.
 */
uint64_t ky_counter_rise(struct ky_counter *c, uint64_t now, unsigned bits);

void ky_losses_begin_damage(struct ky_losses *l, int64_t ns);
/* Does nothing if no damage began. */
void ky_losses_end_damage(struct ky_losses *l, int64_t ns);
/*
 * Adds what the head of a packet, which d has decoded, says about losses before it. is_counted:
 * the records before the packet are wanted. Damage ends where the packet begins.
 */
void ky_losses_add_packet(struct ky_losses *l, const struct ky_stream_class *c,
	const struct ky_decoder *d, bool is_counted);
/*
 * Returns by how much a packet's number, of so many bits, exceeds that of the last one: 1 if it is
 * the next one. 0: it goes back, or no packet had a number.
 */
uint64_t ky_losses_packets_ahead(const struct ky_losses *l, uint64_t now, unsigned bits);
/* Returns the kind of the loss that is to be reported next; KY_ITEM_NONE if there is none. */
enum ky_item_kind ky_losses_next(const struct ky_losses *l);

/* Returns the missing records of an item of this kind; NULL for other kinds. */
static inline struct ky_loss *ky_losses_of(struct ky_losses *l, enum ky_item_kind kind)
{
	switch (kind) {
	case KY_ITEM_DAMAGED:
		return &l->damage;
	case KY_ITEM_LOST_EVENTS:
		return &l->events;
	case KY_ITEM_LOST_PACKETS:
		return &l->packets;
	default:
		return NULL;
	}
}

/* Returns true if a loss is to be reported. */
static inline bool ky_losses_any(const struct ky_losses *l)
{
	return l->damage.n || l->events.n || l->packets.n;
}

#endif
