/* SPDX-License-Identifier: MIT */
/* Packets of libkymo-reader (include/kymo/reader.h): a walk that reads heads alone. */
#include "reader/api.h"

#include "reader/walk-packets.h"

struct kymo_packets {
	struct ky_select all;
	struct ky_packets pool;
	struct ky_walk walk;
	size_t file;
	uint64_t offset;
	struct ky_counter discarded;
	uint64_t n_discarded; /* so far */
};

KYMO_READER_API int kymo_packets_open(
	struct kymo_packets **ret_packets, const struct kymo_reader *reader, size_t stream)
{
	const struct ky_trace_reader *r = ky_reader_inside(reader);
	struct kymo_packets *p;

	if (stream >= r->n_streams)
		return -EINVAL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->all = KY_SELECT_ALL;
	ky_walk_init(&p->walk, r->streams[stream], &p->all, &p->pool, NULL);
	*ret_packets = p;
	return 0;
}

KYMO_READER_API void kymo_packets_close(struct kymo_packets *packets)
{
	if (!packets)
		return;
	ky_walk_deinit(&packets->walk);
	ky_packets_deinit(&packets->pool);
	free(packets);
}

static void describe_packet(
	struct kymo_packets *p, const struct ky_packet_head *head, struct kymo_packet *ret)
{
	const struct ky_file *f = &p->walk.stream->files[p->file];
	const struct ky_decoder *d = &p->walk.d;
	const struct ky_trace_clock *clock = head->class->clock;

	if (ky_has_role(d, KY_ROLE_DISCARDED))
		p->n_discarded += ky_counter_rise(
			&p->discarded, d->role[KY_ROLE_DISCARDED], head->class->discarded_bits);
	*ret = (struct kymo_packet){.path = f->path,
		.offset = p->offset,
		.n_bytes = head->packet_bits / 8,
		.n_content_bytes = (head->content_bits + 7) / 8,
		.n_discarded = p->n_discarded};
	ret->has_times = clock && ky_has_role(d, KY_ROLE_TIMESTAMP_BEGIN) &&
			 ky_has_role(d, KY_ROLE_TIMESTAMP_END);
	if (!ret->has_times)
		return;
	ret->begin_ns = ky_trace_clock_ns(clock, d->role[KY_ROLE_TIMESTAMP_BEGIN]);
	ret->end_ns = ky_trace_clock_ns(clock, d->role[KY_ROLE_TIMESTAMP_END]);
}

KYMO_READER_API int kymo_packets_next(struct kymo_packets *packets, struct kymo_packet *ret_packet)
{
	struct kymo_packets *p = packets;
	const struct ky_stream *s = p->walk.stream;

	for (; p->file < s->n_files; p->file++, p->offset = 0) {
		const struct ky_file *f = &s->files[p->file];

		p->offset = KY_MAX(p->offset, f->first);
		while (p->offset < f->size) {
			struct ky_packet_head head;
			int r = ky_walk_peek(&p->walk, p->file, p->offset, &head);

			if (r == -ENOMEM)
				return r;
			if (!r && head.packet_bits <= (f->size - p->offset) * 8) {
				describe_packet(p, &head, ret_packet);
				p->offset += head.packet_bits / 8;
				return 1;
			}
			p->offset = ky_walk_find_head(&p->walk, p->offset);
		}
	}
	return 0;
}
