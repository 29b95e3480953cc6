/* SPDX-License-Identifier: MIT */
#include "ctf/index.h"

#include "ctf/packet.h"

void ky_index_header_init(struct ky_index_header *h)
{
	*h = (struct ky_index_header){
		.magic = KY_INDEX_MAGIC,
		.version = KY_INDEX_VERSION,
		.entry_size = sizeof(struct ky_index_entry),
	};
}

void ky_index_entry_init(struct ky_index_entry *e, const struct ky_ctf_packet *p, uint64_t offset)
{
	*e = (struct ky_index_entry){
		.offset = offset,
		.size = p->packet_bits / 8,
		.timestamp_begin = p->timestamp_begin,
		.timestamp_end = p->timestamp_end,
		.n_events = p->n_events,
		.discarded = p->events_discarded,
	};
}
