/* SPDX-License-Identifier: MIT */
#include "reader/losses.h"

/*
 * How far a counter of so many bits rose. A counter of fewer than 64 bits wraps; one that goes back
 * by less than half of its range did not rise.
 */
static uint64_t count_between(uint64_t from, uint64_t to, unsigned bits)
{
	uint64_t rise = bits < 64 ? (to - from) & (((uint64_t)1 << bits) - 1) : to - from;

	return rise >> (bits - 1) ? 0 : rise;
}

/* Some tracers write counts that fall and rise again. An event is lost once. */
uint64_t ky_counter_rise(struct ky_counter *c, uint64_t now, unsigned bits)
{
	uint64_t n = c->is_known ? count_between(c->last, now, bits) : now;

	if (n || !c->is_known)
		c->last = now;
	c->is_known = true;
	return n;
}

uint64_t ky_losses_packets_ahead(const struct ky_losses *l, uint64_t now, unsigned bits)
{
	return l->had_seq ? count_between(l->last_seq, now, bits) : 0;
}

/* Returns the number of packets between the last one and this one. A number may go back. */
static uint64_t count_packets(struct ky_losses *l, uint64_t now, unsigned bits)
{
	uint64_t n = ky_losses_packets_ahead(l, now, bits);

	l->last_seq = now;
	l->had_seq = true;
	return n ? n - 1 : 0;
}

void ky_losses_begin_damage(struct ky_losses *l, int64_t ns)
{
	if (!l->is_damaged)
		l->damage = (struct ky_loss){.begin_ns = ns};
	l->is_damaged = true;
}

void ky_losses_end_damage(struct ky_losses *l, int64_t ns)
{
	if (!l->is_damaged)
		return;
	l->is_damaged = false;
	l->damage.n = 1;
	l->damage.end_ns = ns;
}

void ky_losses_add_packet(struct ky_losses *l, const struct ky_stream_class *c,
	const struct ky_decoder *d, bool is_counted)
{
	uint64_t begin = ky_role_or(d, KY_ROLE_TIMESTAMP_BEGIN, d->clock);
	uint64_t end = ky_role_or(d, KY_ROLE_TIMESTAMP_END, begin);
	int64_t last_ns = ky_stream_class_ns(c, l->had_packet ? l->last_end : begin);
	int64_t begin_ns = ky_stream_class_ns(c, begin);
	uint64_t n_events = 0, n_packets = 0;

	ky_losses_end_damage(l, begin_ns);
	if (ky_has_role(d, KY_ROLE_DISCARDED))
		n_events = ky_counter_rise(
			&l->discarded, d->role[KY_ROLE_DISCARDED], c->discarded_bits);
	if (ky_has_role(d, KY_ROLE_PACKET_SEQ))
		n_packets = count_packets(l, d->role[KY_ROLE_PACKET_SEQ], c->seq_bits);
	l->last_end = KY_MAX(end, begin);
	l->had_packet = true;
	if (!is_counted)
		return;
	l->n_discarded += n_events;
	l->n_packets_lost += n_packets;
	l->events = (struct ky_loss){n_events, last_ns, ky_stream_class_ns(c, end)};
	l->packets = (struct ky_loss){n_packets, last_ns, begin_ns};
}

enum ky_item_kind ky_losses_next(const struct ky_losses *l)
{
	return l->damage.n    ? KY_ITEM_DAMAGED
	       : l->events.n  ? KY_ITEM_LOST_EVENTS
	       : l->packets.n ? KY_ITEM_LOST_PACKETS
			      : KY_ITEM_NONE;
}
