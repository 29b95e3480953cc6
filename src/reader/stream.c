/* SPDX-License-Identifier: MIT */
#include "reader/stream.h"

#include <sys/mman.h>

#define CTF_MAGIC      0xc1fc1fc1u
#define MAX_HEAD_EMPTY 4096 /* fields without bits in the head of a packet */

static bool has(const struct ky_decoder *d, enum ky_role role)
{
	return d->have & 1u << role;
}

static int64_t to_ns(const struct ky_stream_class *c, uint64_t clock)
{
	return c->clock ? ky_clock_ns(c->clock, clock) : 0;
}

/* --- packets --- */

static bool is_of_trace(const struct ky_decoder *d, const struct ky_trace *trace)
{
	const struct ky_tsdl *t = &trace->tsdl;

	if (has(d, KY_ROLE_MAGIC) && d->role[KY_ROLE_MAGIC] != CTF_MAGIC)
		return false;
	return !has(d, KY_ROLE_UUID) || !t->has_uuid || trace->ignores_uuid ||
	       d->role[KY_ROLE_UUID] % 8 ||
	       !memcmp(d->data + d->role[KY_ROLE_UUID] / 8, t->uuid, sizeof(t->uuid));
}

struct packet {
	struct ky_stream_class *class;
	uint64_t content_bits, packet_bits;
};

static int check_sizes(struct packet *p, const struct ky_decoder *d)
{
	p->packet_bits = d->end;
	p->content_bits = d->end;
	if (has(d, KY_ROLE_CONTENT_SIZE))
		p->packet_bits = p->content_bits = d->role[KY_ROLE_CONTENT_SIZE];
	if (has(d, KY_ROLE_PACKET_SIZE)) {
		p->packet_bits = d->role[KY_ROLE_PACKET_SIZE];
		if (!has(d, KY_ROLE_CONTENT_SIZE))
			p->content_bits = p->packet_bits;
	}
	if (p->packet_bits % 8 && !has(d, KY_ROLE_PACKET_SIZE) && p->packet_bits < UINT64_MAX - 8)
		p->packet_bits = ky_align_up(p->packet_bits, 8);
	return p->packet_bits && p->packet_bits % 8 == 0 && p->content_bits <= p->packet_bits &&
			       d->pos <= p->content_bits
		       ? 0
		       : -EBADMSG;
}

/* Decodes header and context at the offset; d->slots and d->clock are set. */
static int read_packet_head(struct packet *p, struct ky_decoder *d, const struct ky_file *f,
	uint64_t offset, struct ky_values *context)
{
	const struct ky_layout *l = &f->trace->layout;
	int r = 0;

	d->data = f->data + offset;
	d->pos = 0;
	d->end = (f->size - offset) * 8;
	d->n_empty = KY_MIN(d->end, (uint64_t)MAX_HEAD_EMPTY);
	d->have = 0;
	if (l->packet_header)
		r = ky_decode(d, l->packet_header, NULL);
	if (r < 0)
		return r;
	if (!is_of_trace(d, f->trace))
		return -EBADMSG;
	p->class = has(d, KY_ROLE_STREAM_ID) ? ky_layout_stream(l, d->role[KY_ROLE_STREAM_ID])
		   : l->n_streams	     ? &l->streams[0]
					     : NULL;
	if (!p->class)
		return -EBADMSG;
	if (context) {
		context->n = 0;
		context->max = KY_MAX_VALUES;
	}
	if (p->class->packet_context)
		r = ky_decode(d, p->class->packet_context, context);
	if (!r)
		r = check_sizes(p, d);
	d->n_empty = KY_MIN(p->content_bits, d->end);
	return r;
}

/* Kymo's position_begin, which lies in a gap between fields (docs/trace-format.md, "Packet"). */
#define POSITION_BEGIN 56
#define CONTEXT_END    128

static bool is_cut(const struct ky_file *f, const struct ky_decoder *d)
{
	uint64_t position;

	if (has(d, KY_ROLE_PACKET_SEQ) && d->role[KY_ROLE_PACKET_SEQ])
		return true;
	if (!f->trace->is_kymo || f->size < CONTEXT_END)
		return false;
	memcpy(&position, f->data + POSITION_BEGIN, sizeof(position));
	return position;
}

void ky_file_probe(struct ky_file *f)
{
	struct ky_decoder d = {0};
	struct packet p = {0};

	d.slots = calloc(f->trace->layout.n_slots + 1, sizeof(*d.slots));
	if (d.slots && !read_packet_head(&p, &d, f, 0, NULL)) {
		f->class = p.class;
		f->has_instance = has(&d, KY_ROLE_INSTANCE_ID);
		f->instance = d.role[KY_ROLE_INSTANCE_ID];
		f->begin = d.role[KY_ROLE_TIMESTAMP_BEGIN];
		f->is_cut = is_cut(f, &d);
	}
	free(d.slots);
}

bool ky_stream_is_cut(const struct ky_stream *s, int64_t *ret_ns)
{
	const struct ky_file *f = &s->files[0];

	if (f->is_cut)
		*ret_ns = to_ns(f->class, f->begin);
	return f->is_cut;
}

bool ky_stream_is_of_thread(const struct ky_stream *s)
{
	const struct ky_stream_class *c = s->files[0].class;
	const struct ky_node *context = c ? c->packet_context : NULL;

	for (uint32_t i = 0; context && i < context->n; i++) {
		if (!strcmp(context->children[i].full_name, "vtid"))
			return true;
	}
	return false;
}

/* --- what was lost --- */

/*
 * How far a counter of so many bits rose. A counter of fewer than 64 bits wraps; one that goes back
 * by less than half of its range did not rise.
 */
static uint64_t count_between(uint64_t from, uint64_t to, unsigned bits)
{
	uint64_t rise = bits < 64 ? (to - from) & (((uint64_t)1 << bits) - 1) : to - from;

	return rise >> (bits - 1) ? 0 : rise;
}

/*
 * Some tracers write counts that fall and rise again. An event is lost once: only what exceeds the
 * highest count so far is new. The first packet's count is not a difference.
 */
static void count_lost_events(struct ky_stream *s, int64_t begin_ns, int64_t end_ns)
{
	uint64_t now = s->d.role[KY_ROLE_DISCARDED], n = now;

	if (s->had_discarded)
		n = count_between(s->last_discarded, now, s->class->discarded_bits);
	if (n || !s->had_discarded)
		s->last_discarded = now;
	s->had_discarded = true;
	s->n_discarded += n;
	s->lost_events = (struct ky_lost){n, begin_ns, end_ns};
}

/* A number that went back is no loss. */
static void count_lost_packets(struct ky_stream *s, int64_t begin_ns, int64_t end_ns)
{
	unsigned bits = s->class->seq_bits;
	uint64_t now = s->d.role[KY_ROLE_PACKET_SEQ];
	uint64_t n = count_between(s->last_seq, now, bits);
	bool lost = s->had_seq && n > 1;

	s->last_seq = now;
	s->had_seq = true;
	if (!lost)
		return;
	s->n_packets_lost += n - 1;
	s->lost_packets = (struct ky_lost){n - 1, begin_ns, end_ns};
}

static void begin_damage(struct ky_stream *s)
{
	if (!s->is_damaged)
		s->damage = (struct ky_lost){.begin_ns = to_ns(s->class, s->d.clock)};
	s->is_damaged = true;
}

static void end_damage(struct ky_stream *s, int64_t ns)
{
	if (!s->is_damaged)
		return;
	s->is_damaged = false;
	s->damage.n = 1;
	s->damage.end_ns = ns;
}

static void count_lost(struct ky_stream *s)
{
	const struct ky_decoder *d = &s->d;
	uint64_t begin = has(d, KY_ROLE_TIMESTAMP_BEGIN) ? d->role[KY_ROLE_TIMESTAMP_BEGIN]
							 : d->clock;
	uint64_t end = has(d, KY_ROLE_TIMESTAMP_END) ? d->role[KY_ROLE_TIMESTAMP_END] : begin;
	int64_t last_ns = to_ns(s->class, s->had_packet ? s->last_end : begin);

	end_damage(s, to_ns(s->class, begin));
	if (has(d, KY_ROLE_DISCARDED))
		count_lost_events(s, last_ns, to_ns(s->class, end));
	if (has(d, KY_ROLE_PACKET_SEQ))
		count_lost_packets(s, last_ns, to_ns(s->class, begin));
	s->last_end = KY_MAX(end, begin);
	s->had_packet = true;
	s->end_clock = has(d, KY_ROLE_TIMESTAMP_END) ? end : 0;
}

/* --- walking --- */

/* Where the next packet may begin after a damaged place: at the next magic number. */
static uint64_t find_packet(const struct ky_file *f, uint64_t from)
{
	uint32_t magic = f->trace->tsdl.big_endian ? htobe32(CTF_MAGIC) : htole32(CTF_MAGIC);
	const struct ky_node *header = f->trace->layout.packet_header;
	const uint8_t *found = NULL;

	if (header && header->n && header->children[0].role == KY_ROLE_MAGIC &&
		header->children[0].size == 32 && from < f->size)
		found = memmem(f->data + from, f->size - from, &magic, sizeof(magic));
	return found ? (uint64_t)(found - f->data) : f->size;
}

/* The rest of this packet cannot be read. If even its size is doubtful, looks for another packet.
 */
static void leave_damaged(struct ky_stream *s)
{
	const struct ky_file *f = &s->files[s->file];
	uint64_t at = (uint64_t)(s->d.data - f->data) + KY_MAX(s->d.pos / 8, (uint64_t)1);

	s->in_packet = false;
	if (s->is_cut) {
		s->offset = find_packet(f, at);
		s->is_truncated |= s->offset == f->size;
	}
	if (!s->is_cut || s->offset < f->size)
		s->n_corrupt++;
	begin_damage(s);
}

static bool make_slots(struct ky_stream *s)
{
	uint64_t n = s->files[s->file].trace->layout.n_slots + 1;
	uint64_t *slots = n > s->n_slots ? realloc(s->d.slots, n * sizeof(*slots)) : s->d.slots;

	if (!slots)
		return false;
	if (n > s->n_slots) {
		memset(slots + s->n_slots, 0, (n - s->n_slots) * sizeof(*slots));
		s->n_slots = n;
	}
	s->d.slots = slots;
	return true;
}

/* Opens the packet at s->offset; steps over it if it is none. */
static void open_packet(struct ky_stream *s)
{
	const struct ky_file *f = &s->files[s->file];
	uint64_t offset = s->offset, bits = (f->size - offset) * 8;
	struct packet p = {0};
	int r;

	if (!make_slots(s)) {
		s->error = -ENOMEM;
		return;
	}
	r = read_packet_head(&p, &s->d, f, offset, &s->packet_context);
	if (r == -ENOMEM) {
		s->error = r;
	} else if (r < 0) {
		s->offset = find_packet(f, offset + 1);
		/* A head that is cut off is the end of a file, not damage. */
		if (s->offset == f->size && s->d.pos + 64 > bits)
			s->is_truncated = true;
		else
			s->n_corrupt++;
		if (s->class)
			begin_damage(s);
	}
	if (r < 0)
		return;
	s->class = p.class;
	s->is_cut = p.packet_bits > bits;
	s->offset = offset + KY_MIN(p.packet_bits, bits) / 8;
	s->d.end = KY_MIN(p.content_bits, bits);
	s->in_packet = true;
	s->n_packets++;
	count_lost(s);
}

static void count_event(struct ky_stream *s)
{
	if (!s->last_class && s->class->clock)
		s->first_ns = to_ns(s->class, s->clock);
	if (s->class->clock) {
		s->last_class = s->class;
		s->last_clock = s->clock;
	}
	s->n_events++;
	s->counts[s->event->index]++;
}

static inline int decode_scope(struct ky_stream *s, const struct ky_node *node,
	struct ky_values *values, struct ky_scope_values *scope)
{
	int r;

	if (!values)
		return node ? ky_decode(&s->d, node, NULL) : 0;
	scope->first = values->n;
	r = node ? ky_decode(&s->d, node, values) : 0;
	scope->node = node && node->is_shown ? node : NULL;
	scope->n = values->n - scope->first;
	return r;
}

/* The packet's are the same for all of its events. */
static int copy_packet_context(
	const struct ky_stream *s, struct ky_values *values, struct ky_scope_values *scope)
{
	const struct ky_node *node = s->class->packet_context;

	scope->node = node && node->is_shown ? node : NULL;
	scope->first = values->n;
	scope->n = scope->node ? s->packet_context.n : 0;
	return ky_values_add(values, s->packet_context.v, scope->n);
}

static int decode_body(
	struct ky_stream *s, struct ky_values *values, struct ky_scope_values *scopes)
{
	size_t n_before = values ? values->n : 0;
	int r = 0;

	if (values) {
		values->max = n_before + KY_MAX_VALUES;
		r = copy_packet_context(s, values, &scopes[KY_SCOPE_PACKET_CONTEXT]);
	}
	if (!r)
		r = decode_scope(
			s, s->class->event_context, values, &scopes[KY_SCOPE_EVENT_CONTEXT]);
	if (!r)
		r = decode_scope(s, s->event->context, values, &scopes[KY_SCOPE_SPECIFIC_CONTEXT]);
	if (!r)
		r = decode_scope(s, s->event->fields, values, &scopes[KY_SCOPE_FIELDS]);
	if (r && values)
		values->n = n_before;
	return r;
}

int ky_stream_decode(
	struct ky_stream *s, struct ky_values *values, struct ky_scope_values scopes[KY_N_SCOPES])
{
	struct ky_decoder *d = &s->d;
	int r = 0;

	if (!values && s->event->body_bits <= d->end - d->pos && d->pos % 8 == 0)
		d->pos += s->event->body_bits;
	else
		r = decode_body(s, values, scopes);
	/* A record of no bits at all would never end. */
	if (!r && d->pos == s->record)
		r = -EBADMSG;
	if (r == -EBADMSG)
		leave_damaged(s);
	else if (!r)
		count_event(s);
	return r;
}

static bool read_record_head(struct ky_stream *s, uint64_t *ret_id)
{
	const struct ky_stream_class *c = s->class;
	struct ky_decoder *d = &s->d;

	d->have = 0;
	if (c->short_head.bits && ky_decode_short_head(d, &c->short_head, ret_id))
		return true;
	if (c->event_header && ky_decode(d, c->event_header, NULL) < 0)
		return false;
	*ret_id = has(d, KY_ROLE_EVENT_ID) ? d->role[KY_ROLE_EVENT_ID] : 0;
	return true;
}

/*
 * Moves the clock to the end of the packet, where the next one begins if it does not tell. An end
 * that lies before the last event, as some tracers write it, does not count; nor does one of few
 * bits, because it is not known how often these began anew.
 */
static void end_clock(struct ky_stream *s)
{
	if (s->class->end_bits == 64 && s->end_clock > s->d.clock)
		s->d.clock = s->end_clock;
}

/* Reads the head of the next record; false when the packet holds no more. */
static bool open_record(struct ky_stream *s)
{
	const struct ky_node *header = s->class->event_header;
	struct ky_decoder *d = &s->d;
	uint64_t at = header ? ky_align_up(d->pos, header->align) : d->pos, id;
	uint64_t before;

	if (at >= d->end) {
		s->in_packet = false;
		end_clock(s);
		if (s->is_cut)
			leave_damaged(s);
		return false;
	}
	s->record = d->pos;
	before = d->clock;
	if (!read_record_head(s, &id) || !(s->event = ky_stream_class_event(s->class, id))) {
		d->clock = before;
		leave_damaged(s);
		return false;
	}
	s->clock = d->clock;
	return true;
}

/* Goes to the next event of the packet that is wanted; false when it holds no more. */
static bool next_event(struct ky_stream *s)
{
	while (open_record(s)) {
		if (!s->spans_only || s->event->is_span) {
			s->next = KY_ITEM_EVENT;
			s->next_ns = to_ns(s->class, s->clock);
			return true;
		}
		if (ky_stream_decode(s, NULL, NULL) < 0)
			return false;
	}
	return false;
}

/* Where the missing records of an item of this kind are kept; NULL for events. */
static struct ky_lost *lost_of(struct ky_stream *s, enum ky_item_kind kind)
{
	switch (kind) {
	case KY_ITEM_DAMAGED:
		return &s->damage;
	case KY_ITEM_LOST_EVENTS:
		return &s->lost_events;
	case KY_ITEM_LOST_PACKETS:
		return &s->lost_packets;
	default:
		return NULL;
	}
}

static bool next_lost(struct ky_stream *s)
{
	static const enum ky_item_kind kinds[] = {
		KY_ITEM_DAMAGED, KY_ITEM_LOST_EVENTS, KY_ITEM_LOST_PACKETS};

	for (size_t i = 0; i < KY_ARRAY_SIZE(kinds); i++) {
		const struct ky_lost *l = lost_of(s, kinds[i]);

		if (!l->n)
			continue;
		s->next = kinds[i];
		s->next_ns = l->begin_ns;
		return true;
	}
	return false;
}

void ky_stream_advance(struct ky_stream *s)
{
	struct ky_lost *reported = lost_of(s, s->next);

	if (reported)
		reported->n = 0;
	s->next = KY_ITEM_NONE;
	while (!s->error && s->file < s->n_files) {
		if (next_lost(s) || (s->in_packet && next_event(s)))
			return;
		if (s->offset < s->files[s->file].size) {
			open_packet(s);
		} else {
			s->file++;
			s->offset = 0;
		}
	}
	end_damage(s, INT64_MAX);
	next_lost(s);
}

const struct ky_lost *ky_stream_lost(const struct ky_stream *s)
{
	return lost_of((struct ky_stream *)s, s->next);
}

bool ky_stream_end_ns(const struct ky_stream *s, int64_t *ret_ns)
{
	if (s->last_class)
		*ret_ns = to_ns(s->last_class, s->last_clock);
	return s->last_class;
}

void ky_file_deinit(struct ky_file *f)
{
	if (f->data && !f->is_borrowed)
		munmap((void *)f->data, f->size);
	free(f->path);
	*f = (struct ky_file){0};
}

void ky_stream_deinit(struct ky_stream *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		ky_file_deinit(&s->files[i]);
	free(s->files);
	free(s->d.slots);
	free(s->packet_context.v);
	*s = (struct ky_stream){0};
}
