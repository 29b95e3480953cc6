/* SPDX-License-Identifier: MIT */
#include "reader/stream.h"

#include <limits.h>

#include "base/bisect.h"

#define CTF_MAGIC 0xc1fc1fc1u

#define HEAD_SIZE   ((uint64_t)4 << 10)	 /* bytes that a packet's head is looked for in */
#define HEAD_MAX    ((uint64_t)64 << 10) /* the same, once a head was not found in those */
#define WIDE_SIZE   (4 * HEAD_MAX) /* bytes that are read at once while packets are looked for */
#define SMALL_MAX   ((uint64_t)64 << 10) /* bytes that are read at once of small packets */
#define PACKET_MAX  ((uint64_t)16 << 20) /* larger packets are read in pieces */
#define PIECE_SIZE  ((uint64_t)1 << 20)
#define RECORD_MAX  ((uint64_t)256 << 20)
#define EMPTY_MIN   65536 /* fields without bits in each file, and one more for each bit */
#define REREAD_MAX  8	  /* for each byte of a file; records need half of it at most */
#define PIECE_ALIGN 4096  /* bytes; pieces begin at multiples */

static bool has_decoded(const struct ky_decoder *d, enum ky_role role)
{
	return d->have & 1u << role;
}

static int64_t to_ns(const struct ky_stream_class *c, uint64_t clock)
{
	return c->clock ? ky_trace_clock_ns(c->clock, clock) : 0;
}

/* --- packets --- */

static bool has_magic(const struct ky_decoder *d)
{
	return !has_decoded(d, KY_ROLE_MAGIC) || d->role[KY_ROLE_MAGIC] == CTF_MAGIC;
}

static bool has_uuid(const struct ky_decoder *d, const struct ky_trace *trace)
{
	const struct ky_tsdl *t = &trace->tsdl;

	return !has_decoded(d, KY_ROLE_UUID) || !t->has_uuid || trace->ignores_uuid ||
	       d->role[KY_ROLE_UUID] % 8 ||
	       !memcmp(d->data + d->role[KY_ROLE_UUID] / 8, t->uuid, sizeof(t->uuid));
}

static int refuse_head(struct ky_packet_head *p, enum ky_head_fault fault)
{
	p->fault = fault;
	return -EBADMSG;
}

/* file_bits: from the packet to the end of its file. */
static int check_sizes(struct ky_packet_head *p, const struct ky_decoder *d, uint64_t file_bits)
{
	p->packet_bits = file_bits;
	p->content_bits = file_bits;
	if (has_decoded(d, KY_ROLE_CONTENT_SIZE))
		p->packet_bits = p->content_bits = d->role[KY_ROLE_CONTENT_SIZE];
	if (has_decoded(d, KY_ROLE_PACKET_SIZE)) {
		p->packet_bits = d->role[KY_ROLE_PACKET_SIZE];
		if (!has_decoded(d, KY_ROLE_CONTENT_SIZE))
			p->content_bits = p->packet_bits;
	}
	if (p->content_bits <= p->packet_bits - p->packet_bits % 8)
		p->packet_bits -= p->packet_bits % 8;
	else if (p->packet_bits < UINT64_MAX - 8)
		p->packet_bits = ky_align_up(p->packet_bits, 8);
	return p->packet_bits && p->packet_bits % 8 == 0 && p->content_bits <= p->packet_bits &&
			       d->pos <= p->content_bits
		       ? 0
		       : -EBADMSG;
}

int ky_packet_head_decode(struct ky_packet_head *ret, struct ky_decoder *d, const struct ky_file *f,
	uint64_t file_bits, struct ky_values *context)
{
	const struct ky_layout *l = &f->trace->layout;
	int r = 0;

	d->pos = 0;
	d->have = 0;
	if (l->packet_header)
		r = ky_decode(d, l->packet_header, NULL);
	ret->fault = KY_HEAD_UNREADABLE;
	if (!has_magic(d))
		return refuse_head(ret, KY_HEAD_MAGIC);
	if (r < 0)
		return r;
	if (!has_uuid(d, f->trace))
		return refuse_head(ret, KY_HEAD_UUID);
	ret->class = has_decoded(d, KY_ROLE_STREAM_ID)
			     ? ky_layout_stream(l, d->role[KY_ROLE_STREAM_ID])
		     : l->n_streams ? &l->streams[0]
				    : NULL;
	if (!ret->class)
		return refuse_head(ret, KY_HEAD_CLASS);
	if (context) {
		context->n = 0;
		context->max = KY_MAX_VALUES;
	}
	if (ret->class->packet_context)
		r = ky_decode(d, ret->class->packet_context, context);
	return r ? r : check_sizes(ret, d, file_bits);
}

/* Kymo's position_begin, which lies in a gap between fields (docs/trace-format.md, "Packet"). */
#define POSITION_BEGIN 56
#define CONTEXT_END    128
#define GAP_ALIGN      256 /* bits: of the field behind the gap */

/* Copies by other programs have other packets, although their metadata names Kymo. */
static bool has_gap(const struct ky_stream_class *c)
{
	const struct ky_node *context = c->packet_context;

	for (uint32_t i = 0; context && i < context->n; i++) {
		if (context->children[i].role == KY_ROLE_TIMESTAMP_BEGIN)
			return context->children[i].align == GAP_ALIGN;
	}
	return false;
}

uint64_t ky_packet_position(
	const struct ky_trace *t, const struct ky_stream_class *c, const struct ky_decoder *d)
{
	uint64_t position = 0;

	if (t->is_kymo && has_gap(c) && d->end / 8 >= CONTEXT_END)
		memcpy(&position, d->data + POSITION_BEGIN, sizeof(position));
	return position;
}

void ky_file_probe(struct ky_file *f, const uint8_t *data, size_t n)
{
	struct ky_decoder d = {.data = data, .end = n * 8, .n_empty = n * 8};
	struct ky_packet_head p = {0};

	d.slots = calloc(f->trace->layout.n_slots + 1, sizeof(*d.slots));
	if (d.slots && !ky_packet_head_decode(&p, &d, f, f->size * 8, NULL)) {
		f->class = p.class;
		f->has_instance = has_decoded(&d, KY_ROLE_INSTANCE_ID);
		f->instance = d.role[KY_ROLE_INSTANCE_ID];
		f->begin = d.role[KY_ROLE_TIMESTAMP_BEGIN];
		f->position = ky_packet_position(f->trace, p.class, &d);
		f->is_cut = f->position || ky_role_or(&d, KY_ROLE_PACKET_SEQ, 0);
	}
	f->fault = p.fault;
	free(d.slots);
}

ssize_t ky_file_read(struct ky_file *f, void *to, size_t n, uint64_t offset)
{
	if (!f->data)
		return ky_handle_read(&f->handle, f->files, f->path, to, n, offset);
	n = offset < f->size ? KY_MIN(n, f->size - offset) : 0;
	memcpy(to, f->data + offset, n);
	return (ssize_t)n;
}

bool ky_stream_is_cut(const struct ky_stream *s, int64_t *ret_ns)
{
	const struct ky_file *f = &s->files[0];

	if (!f->is_cut || s->continues)
		return false;
	*ret_ns = to_ns(f->class, f->begin);
	return true;
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

/* --- bytes of the file --- */

static struct ky_file *current_file(const struct ky_walk *w)
{
	return &w->stream->files[w->file];
}

/* Reads n bytes at offset into a buffer, which replaces the walk's; false without any. */
static bool load_bytes(struct ky_walk *w, uint64_t offset, uint64_t n)
{
	struct ky_file *f = current_file(w);
	struct ky_packet *p = w->packet;
	ssize_t r;

	if (!p || p->n_users > 1 || p->cap < n) {
		w->packet = ky_packet_unref(p, w->packets);
		p = w->packet = f->data ? ky_packet_borrow(f->data)
					: ky_packet_new(w->packets, (size_t)n);
	}
	if (!p) {
		w->error = -ENOMEM;
		return false;
	}
	p->at = f->data ? 0 : offset;
	p->len = f->size;
	if (f->data)
		return true;
	r = ky_file_read(f, p->data, (size_t)n, offset);
	p->len = r > 0 ? (uint64_t)r : 0;
	if (p->len < n) {
		w->file_error = r < 0 ? (int)r : -ENODATA;
		w->read_error = w->read_error ? w->read_error : w->file_error;
	}
	return p->len;
}

/*
 * Makes n bytes from offset on available, or as many as the file has, and d->data point to them.
 * Returns how many there are, which may be more.
 */
static uint64_t fetch_bytes(struct ky_walk *w, uint64_t offset, uint64_t n)
{
	const struct ky_packet *p = w->packet;
	const struct ky_file *f = current_file(w);
	uint64_t rest = f->size - KY_MIN(offset, f->size);

	n = KY_MIN(n, rest);
	if (!p || offset < p->at || offset - p->at > p->len || n > p->len - (offset - p->at)) {
		if (!n ||
			!load_bytes(w, offset, w->is_wide ? KY_MIN(rest, KY_MAX(n, WIDE_SIZE)) : n))
			return 0;
		p = w->packet;
	}
	w->d.data = p->data + (offset - p->at);
	return p->len - (offset - p->at);
}

/* How many bytes to read for the head of the next packet, and what may follow. */
static uint64_t size_to_read(const struct ky_walk *w)
{
	if (w->is_wide)
		return HEAD_MAX;
	if (w->last_size > PACKET_MAX)
		return HEAD_SIZE;
	return KY_MAX(KY_MAX(w->last_size, KY_MIN(8 * w->last_size, SMALL_MAX)), HEAD_SIZE);
}

/* True if the packet goes on behind the bytes that are there. */
static bool has_more(const struct ky_walk *w)
{
	return w->window * 8 + w->d.end < w->content_bits;
}

/* Reads n bytes of the packet from `at` on. Keeps those of its head. Returns how many there are. */
static uint64_t load_piece(struct ky_walk *w, uint64_t at, uint64_t n)
{
	struct ky_packet *head = w->packet->head ? w->packet->head : w->packet;
	uint64_t got;

	ky_packet_ref(head);
	got = fetch_bytes(w, w->packet_offset + at, n);
	if (w->packet && w->packet != head && !w->packet->head)
		w->packet->head = head;
	else
		ky_packet_unref(head, w->packets);
	return got;
}

/*
 * Reads a larger piece of the packet, which begins with the record at that bit. d->pos and
 * w->record are then at it. The packet's context still refers to the first piece. Returns false if
 * there is no more. Hostile packets may all claim to reach to the end of the file: the file's size
 * limits how much is read in total.
 */
static bool fetch_piece(struct ky_walk *w, uint64_t record)
{
	uint64_t skip = record / 8 / PIECE_ALIGN * PIECE_ALIGN, n = w->d.end / 8 - skip, got;
	uint64_t n_wanted = KY_MAX(2 * n, PIECE_SIZE);

	if (!has_more(w) || n >= RECORD_MAX || n_wanted > w->n_reread)
		return false;
	w->n_reread -= n_wanted;
	got = load_piece(w, w->window + skip, n_wanted);
	if (got <= n)
		return false;
	w->window += skip;
	w->d.end = KY_MIN(got * 8, w->content_bits - w->window * 8);
	w->record = w->d.pos = record - skip * 8;
	return true;
}

/* --- losses --- */

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
 * highest count so far is new. The first packet's count is not a difference. is_counted: the
 * records before the packet are in the slice.
 */
static void count_lost_events(struct ky_walk *w, int64_t begin_ns, int64_t end_ns, bool is_counted)
{
	uint64_t now = w->d.role[KY_ROLE_DISCARDED], n = now;

	if (w->had_discarded)
		n = count_between(w->last_discarded, now, w->class->discarded_bits);
	if (n || !w->had_discarded)
		w->last_discarded = now;
	w->had_discarded = true;
	if (!is_counted)
		return;
	w->n_discarded += n;
	w->lost_events = (struct ky_lost){n, begin_ns, end_ns};
}

/* A number that went back is no loss. */
static void count_lost_packets(struct ky_walk *w, int64_t begin_ns, int64_t end_ns, bool is_counted)
{
	unsigned bits = w->class->seq_bits;
	uint64_t now = w->d.role[KY_ROLE_PACKET_SEQ];
	uint64_t n = count_between(w->last_seq, now, bits);
	bool lost = w->had_seq && n > 1;

	w->last_seq = now;
	w->had_seq = true;
	if (!lost || !is_counted)
		return;
	w->n_packets_lost += n - 1;
	w->lost_packets = (struct ky_lost){n - 1, begin_ns, end_ns};
}

static void begin_damage(struct ky_walk *w)
{
	w->is_doubtful = true;
	if (!w->is_damaged && w->class)
		w->damage = (struct ky_lost){.begin_ns = to_ns(w->class, w->d.clock)};
	w->is_damaged = w->class;
}

static void end_damage(struct ky_walk *w, int64_t ns)
{
	if (!w->is_damaged)
		return;
	w->is_damaged = false;
	w->damage.n = 1;
	w->damage.end_ns = ns;
}

/* From the head of a packet. */
static void count_lost(struct ky_walk *w, bool is_counted)
{
	const struct ky_decoder *d = &w->d;
	uint64_t begin = has_decoded(d, KY_ROLE_TIMESTAMP_BEGIN) ? d->role[KY_ROLE_TIMESTAMP_BEGIN]
								 : d->clock;
	uint64_t end = has_decoded(d, KY_ROLE_TIMESTAMP_END) ? d->role[KY_ROLE_TIMESTAMP_END]
							     : begin;
	int64_t last_ns = to_ns(w->class, w->had_packet ? w->last_end : begin);

	end_damage(w, to_ns(w->class, begin));
	if (has_decoded(d, KY_ROLE_DISCARDED))
		count_lost_events(w, last_ns, to_ns(w->class, end), is_counted);
	if (has_decoded(d, KY_ROLE_PACKET_SEQ))
		count_lost_packets(w, last_ns, to_ns(w->class, begin), is_counted);
	w->last_end = KY_MAX(end, begin);
	w->had_packet = true;
	w->end_clock = has_decoded(d, KY_ROLE_TIMESTAMP_END) ? end : 0;
}

/* --- damage --- */

/* The magic number that may begin a packet; false if heads have none. */
static bool get_magic(const struct ky_file *f, uint32_t *ret_magic)
{
	const struct ky_node *header = f->trace->layout.packet_header;

	*ret_magic = f->trace->tsdl.big_endian ? htobe32(CTF_MAGIC) : htole32(CTF_MAGIC);
	return header && header->n && header->children[0].role == KY_ROLE_MAGIC &&
	       header->children[0].size == 32;
}

/* Returns the place of the next magic number after a damaged place: a packet may begin there. */
static uint64_t find_packet(struct ky_walk *w, uint64_t from)
{
	const struct ky_file *f = current_file(w);
	uint32_t magic;
	uint64_t n;

	w->is_wide = true;
	if (!get_magic(f, &magic))
		return f->size;
	for (; from < f->size; from += n - sizeof(magic) + 1) {
		const uint8_t *found;

		n = fetch_bytes(w, from, HEAD_MAX);
		if (n < sizeof(magic))
			break;
		found = memmem(w->d.data, n, &magic, sizeof(magic));
		if (found)
			return from + (uint64_t)(found - w->d.data);
	}
	return f->size;
}

static void count_damage(struct ky_walk *w)
{
	if (!w->before_slice)
		w->n_corrupt++;
}

/*
 * Leaves a packet whose rest cannot be read. If even its size is doubtful, searches for another
 * packet.
 */
static void leave_damaged(struct ky_walk *w)
{
	const struct ky_file *f = current_file(w);

	w->in_packet = false;
	begin_damage(w);
	if (w->is_cut) {
		w->offset = find_packet(
			w, w->packet_offset + w->window + KY_MAX(w->d.pos / 8, (uint64_t)1));
		w->is_truncated |= w->offset == f->size && !w->file_error;
	}
	if (!w->is_cut || w->offset < f->size)
		count_damage(w);
}

/*
 * Skips an invalid head at this offset. bits: the file has so many from there on. The next head may
 * begin within the bytes of this one: the file's size limits how much is decoded in total.
 */
static void skip_bad_head(
	struct ky_walk *w, uint64_t offset, uint64_t bits, enum ky_head_fault fault)
{
	const struct ky_file *f = current_file(w);
	uint64_t pos = w->d.pos;

	w->n_reread -= KY_MIN(pos / 8, w->n_reread);
	w->offset = w->n_reread ? find_packet(w, offset + 1) : f->size;
	/* A head that is cut off is the end of a file, not damage. */
	if (fault == KY_HEAD_UNREADABLE && w->offset == f->size && pos + 64 > bits)
		w->is_truncated = true;
	else
		count_damage(w);
	begin_damage(w);
}

/* --- packets --- */

static bool make_slots(struct ky_walk *w)
{
	uint64_t n = current_file(w)->trace->layout.n_slots + 1;
	uint64_t *slots = n > w->n_slots ? realloc(w->d.slots, n * sizeof(*slots)) : w->d.slots;

	if (!slots) {
		w->error = -ENOMEM;
		return false;
	}
	if (n > w->n_slots) {
		memset(slots + w->n_slots, 0, (n - w->n_slots) * sizeof(*slots));
		w->n_slots = n;
	}
	w->d.slots = slots;
	return true;
}

/*
 * Decodes the head of the packet at the offset, with so many bytes there if the file has them;
 * reads more of a head that is longer. 0, -EBADMSG or -ENOMEM.
 */
static int read_head(struct ky_walk *w, struct ky_packet_head *p, uint64_t offset, uint64_t n)
{
	const struct ky_file *f = current_file(w);
	uint64_t rest = f->size - offset, got;
	uint64_t clock = w->d.clock;
	int r;

	for (;;) {
		got = fetch_bytes(w, offset, n);
		if (!got)
			return w->error ? w->error : -EBADMSG;
		w->d.clock = clock;
		w->d.end = KY_MIN(got, rest) * 8;
		r = ky_packet_head_decode(p, &w->d, f, rest * 8, &w->packet_context);
		if (r != -EBADMSG || n >= HEAD_MAX || got >= KY_MIN(rest, HEAD_MAX))
			return r;
		w->is_wide = true;
		n = HEAD_MAX;
	}
}

/* How many bytes of a packet are read at once. */
static uint64_t piece_of(const struct ky_walk *w, const struct ky_packet_head *p, uint64_t rest)
{
	uint64_t n = (p->content_bits + 7) / 8;

	if (p->packet_bits > rest * 8)
		return SMALL_MAX;
	return n > PACKET_MAX ? PIECE_SIZE : n;
}

/* Reads the head of the packet at w->offset, and the packet, or its first piece. */
static int read_packet(struct ky_walk *w, struct ky_packet_head *p)
{
	const struct ky_file *f = current_file(w);
	uint64_t rest = f->size - w->offset, got, clock = w->d.clock;
	int r = read_head(w, p, w->offset, size_to_read(w));

	if (r < 0)
		return r;
	got = w->packet->len - (w->offset - w->packet->at);
	if (got < piece_of(w, p, rest) && got < rest && !w->file_error) {
		w->d.clock = clock;
		r = read_head(w, p, w->offset, piece_of(w, p, rest));
		got = r < 0 ? 0 : w->packet->len - (w->offset - w->packet->at);
	}
	w->content_bits = KY_MIN(p->content_bits, rest * 8);
	w->d.end = KY_MIN(got * 8, w->content_bits);
	return r;
}

static void drop_packet(struct ky_walk *w)
{
	w->packet = ky_packet_unref(w->packet, w->packets);
}

static void end_walk(struct ky_walk *w)
{
	w->in_packet = false;
	w->is_ended = true;
	drop_packet(w);
}

/* A file that cannot be read any more, or was shortened, is damaged from here on. */
static void leave_file(struct ky_walk *w)
{
	w->offset = current_file(w)->size;
	begin_damage(w);
}

/* True if the slice may end in the current packet. */
static bool may_end_here(const struct ky_walk *w)
{
	const struct ky_place *end = w->end;

	if (!end || w->file != end->file)
		return end && w->file > end->file;
	return w->packet_offset >= end->offset;
}

/*
 * At the first packet where the slice may end: the next slice begins there with what the index
 * says. That has to be what this walk has found.
 */
static void meet_end(struct ky_walk *w)
{
	const struct ky_place *end = w->end;

	w->met_end = true;
	if (w->file != end->file || w->packet_offset != end->offset || w->d.clock != end->begin ||
		(w->had_discarded && w->last_discarded != end->discarded))
		w->is_doubtful = true;
}

/* Whether the times of the current packet's records matter. */
static void set_limits(struct ky_walk *w)
{
	const struct ky_select *select = w->select;

	w->is_limited = select->from_ns > INT64_MIN || select->to_ns < INT64_MAX ||
			w->before_slice || may_end_here(w);
	w->in_range = !w->is_limited;
}

/* Opens the packet at w->offset; steps over it if it is none. */
static void open_packet(struct ky_walk *w)
{
	const struct ky_file *f = current_file(w);
	uint64_t offset = w->offset, bits = (f->size - offset) * 8;
	struct ky_packet_head p = {0};
	bool had_error = w->file_error;
	int r;

	if (!make_slots(w))
		return;
	if (w->packet && w->packet->head)
		drop_packet(w);
	r = read_packet(w, &p);
	if (r == -ENOMEM)
		w->error = r;
	else if (r < 0 && w->file_error)
		leave_file(w);
	else if (r < 0)
		skip_bad_head(w, offset, bits, p.fault);
	if (r < 0)
		return;
	w->class = p.class;
	w->packet_offset = offset;
	w->window = 0;
	w->is_cut = p.packet_bits > bits;
	w->last_size = KY_MIN(p.packet_bits, bits) / 8;
	w->offset = offset + w->last_size;
	if (w->file_error && !had_error) {
		/* The existing part is read. */
		w->is_cut = true;
		w->content_bits = w->d.end;
		w->offset = f->size;
	}
	w->in_packet = true;
	if (w->d.clock < w->clock)
		w->is_doubtful = true;
	if (!w->met_end && may_end_here(w))
		meet_end(w);
	w->n_packets += !w->before_slice;
	set_limits(w);
	count_lost(w, !w->before_slice);
}

/* --- events --- */

static inline void count_event(struct ky_walk *w)
{
	if (w->class->clock) {
		if (ky_unlikely(!w->last_class || w->clock < w->min_clock))
			w->min_clock = w->clock;
		if (ky_likely(w->clock > w->max_clock))
			w->max_clock = w->clock;
		w->last_class = w->class;
	}
	w->n_events++;
	w->counts[w->event->index]++;
}

static inline int decode_scope(struct ky_walk *w, const struct ky_node *node,
	struct ky_values *values, struct ky_scope_values *scope, bool steps)
{
	int r;

	if (!values)
		return node ? ky_decode(&w->d, node, NULL) : 0;
	scope->first = values->n;
	scope->node = node && node->is_shown ? node : NULL;
	scope->data = w->d.data;
	scope->bytes = NULL;
	scope->n = 0;
	if (!node)
		return 0;
	if (steps && node->steps) {
		scope->bytes = w->d.data + ky_align_up(w->d.pos, node->align) / 8;
		scope->bytes_end = w->d.data + w->d.end / 8;
		return ky_decode_steps(&w->d, node);
	}
	r = ky_decode(&w->d, node, values);
	scope->n = values->n - scope->first;
	return r;
}

/* The packet's are the same for all of its events. */
static int copy_packet_context(
	const struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scope)
{
	const struct ky_node *node = w->class->packet_context;
	const struct ky_packet *head = w->packet->head;

	scope->node = node && node->is_shown ? node : NULL;
	scope->data = head ? head->data + (w->packet_offset - head->at) : w->d.data;
	scope->bytes = NULL;
	scope->first = values->n;
	scope->n = scope->node ? w->packet_context.n : 0;
	return ky_values_add(values, w->packet_context.v, scope->n);
}

static int decode_body(
	struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scopes, bool steps)
{
	struct ky_scope_values unwanted[KY_N_SCOPES];
	size_t n_before = values ? values->n : 0;
	int r = 0;

	if (!scopes)
		scopes = unwanted;
	if (values) {
		values->max = n_before + KY_MAX_VALUES;
		r = copy_packet_context(w, values, &scopes[KY_SCOPE_PACKET_CONTEXT]);
	}
	if (!r)
		r = decode_scope(
			w, w->class->event_context, values, &scopes[KY_SCOPE_EVENT_CONTEXT], steps);
	if (!r)
		r = decode_scope(
			w, w->event->context, values, &scopes[KY_SCOPE_SPECIFIC_CONTEXT], steps);
	if (!r)
		r = decode_scope(w, w->event->fields, values, &scopes[KY_SCOPE_FIELDS], steps);
	if (r && values)
		values->n = n_before;
	return r;
}

static inline bool read_record_head(struct ky_walk *w, uint64_t *ret_id)
{
	const struct ky_stream_class *c = w->class;
	struct ky_decoder *d = &w->d;

	d->have = 0;
	if (c->short_head.bits && ky_decode_short_head(d, &c->short_head, ret_id))
		return true;
	if (c->event_header && ky_decode(d, c->event_header, NULL) < 0)
		return false;
	*ret_id = has_decoded(d, KY_ROLE_EVENT_ID) ? d->role[KY_ROLE_EVENT_ID] : c->default_id;
	return true;
}

/* Reads the head of the record at w->record; false if it is none. */
static inline bool read_event_here(struct ky_walk *w)
{
	uint64_t before = w->d.clock, id;

	w->d.pos = w->record;
	if (ky_unlikely(!read_record_head(w, &id))) {
		w->d.clock = before;
		return false;
	}
	w->event = ky_stream_class_event(w->class, id);
	w->clock_before = before;
	w->clock = w->d.clock;
	if (ky_unlikely(w->clock < before))
		w->is_doubtful = true;
	w->body = ky_align_up(w->d.pos, 8);
	return w->event;
}

/* The same, from the next piece of the packet if it is not in this one. */
static inline bool read_event(struct ky_walk *w)
{
	while (!read_event_here(w)) {
		if (!fetch_piece(w, w->record))
			return false;
	}
	return true;
}

/* Steps over the body of the current record, if its size is known and it is there. */
static inline bool step_over(struct ky_walk *w)
{
	struct ky_decoder *d = &w->d;

	if (w->event->body_bits > d->end - d->pos || d->pos % 8)
		return false;
	d->pos += w->event->body_bits;
	return true;
}

/*
 * Decodes the body of the current record, in a larger piece of the packet if its end is not there.
 */
static int decode_record(
	struct ky_walk *w, struct ky_values *values, struct ky_scope_values *scopes, bool steps)
{
	struct ky_decoder *d = &w->d;

	if (!values && step_over(w))
		return 0;
	for (;;) {
		int r = decode_body(w, values, scopes, steps);

		if (r != -EBADMSG || !fetch_piece(w, w->record))
			return r;
		d->clock = w->clock_before;
		if (!read_event(w))
			return -EBADMSG;
	}
}

int ky_walk_decode(struct ky_walk *w, struct ky_values *values,
	struct ky_scope_values scopes[KY_N_SCOPES], bool steps)
{
	int r = decode_record(w, values, scopes, steps);

	/* A record of no bits at all would never end. */
	if (!r && w->d.pos == w->record)
		r = -EBADMSG;
	if (r == -EBADMSG) {
		w->d.clock = w->clock;
		leave_damaged(w);
	} else if (!r && w->in_range) {
		count_event(w);
	}
	return r;
}

/*
 * Moves the clock to the end of the packet, where the next one begins if it does not say. An end
 * that lies before the last event, as some tracers write it, does not count; nor does one of few
 * bits, because it is not known how often these began anew.
 */
static void end_clock(struct ky_walk *w)
{
	if (w->class->end_bits == 64 && w->end_clock > w->d.clock)
		w->d.clock = w->end_clock;
}

/* Reads the head of the next record; false when the packet holds no more. */
static inline bool open_record(struct ky_walk *w)
{
	const struct ky_node *header = w->class->event_header;
	struct ky_decoder *d = &w->d;
	uint64_t at = header ? ky_align_up(d->pos, header->align) : d->pos;
	uint64_t before = d->clock;

	if (at >= d->end && !fetch_piece(w, d->pos)) {
		w->in_packet = false;
		end_clock(w);
		if (w->is_cut)
			leave_damaged(w);
		return false;
	}
	w->record = d->pos;
	if (!read_event(w)) {
		d->clock = before;
		leave_damaged(w);
		return false;
	}
	return true;
}

/* True if the slice ends before the record at ns. */
static bool is_behind_slice(const struct ky_walk *w, int64_t ns)
{
	return w->select->has_slice_end && ns >= w->select->slice_end_ns && may_end_here(w);
}

/* True if the record at ns counts: it is in the slice, and in the range of time. */
static inline bool is_in_range(struct ky_walk *w, int64_t ns)
{
	const struct ky_select *select = w->select;

	if (ky_unlikely(w->before_slice)) {
		if (ns < select->slice_begin_ns)
			return false;
		w->before_slice = false;
	}
	return !w->class->clock || (ns >= select->from_ns && ns <= select->to_ns);
}

/* Steps over the current event, which is counted. False if it is damaged. */
static inline bool skip_event(struct ky_walk *w)
{
	if (ky_unlikely(!step_over(w) || w->d.pos == w->record))
		return ky_walk_decode(w, NULL, NULL, false) == 0;
	if (w->in_range)
		count_event(w);
	return true;
}

/* Checks the limits of time. Returns false if the slice ends before the current event. */
static bool check_time(struct ky_walk *w)
{
	int64_t ns = to_ns(w->class, w->clock);

	if (is_behind_slice(w, ns)) {
		end_walk(w);
		return false;
	}
	w->in_range = is_in_range(w, ns);
	w->had_event = true;
	w->at_ns = ns;
	return true;
}

/* Goes to the next event of the packet that is wanted; false when it holds no more. */
static bool next_event(struct ky_walk *w)
{
	const uint8_t *wanted = w->select->wanted;
	bool is_limited = w->is_limited;

	while (open_record(w)) {
		if (is_limited && !check_time(w))
			return false;
		if (w->in_range && (!wanted || wanted[w->event->index])) {
			w->next = KY_ITEM_EVENT;
			w->next_ns = to_ns(w->class, w->clock);
			return true;
		}
		if (!skip_event(w))
			return false;
	}
	return false;
}

/* Returns the missing records of an item of this kind; NULL for events. */
static struct ky_lost *lost_of(struct ky_walk *w, enum ky_item_kind kind)
{
	switch (kind) {
	case KY_ITEM_DAMAGED:
		return &w->damage;
	case KY_ITEM_LOST_EVENTS:
		return &w->lost_events;
	case KY_ITEM_LOST_PACKETS:
		return &w->lost_packets;
	default:
		return NULL;
	}
}

static inline bool has_lost(const struct ky_walk *w)
{
	return w->damage.n || w->lost_events.n || w->lost_packets.n;
}

static bool next_lost(struct ky_walk *w)
{
	static const enum ky_item_kind kinds[] = {
		KY_ITEM_DAMAGED, KY_ITEM_LOST_EVENTS, KY_ITEM_LOST_PACKETS};

	for (size_t i = 0; i < KY_ARRAY_SIZE(kinds); i++) {
		const struct ky_lost *l = lost_of(w, kinds[i]);

		if (!l->n)
			continue;
		w->next = kinds[i];
		w->next_ns = l->begin_ns;
		return true;
	}
	return false;
}

/* True if packets before or behind the one of this time may overlap it. */
static bool is_in_disorder(const struct ky_stream *s, int64_t ns)
{
	const struct ky_stream_class *class = s->files[0].class;

	return s->disorder_end && ns >= to_ns(class, s->disorder_begin) &&
	       ns <= to_ns(class, s->disorder_end);
}

/* The rest of the stream was recorded after what is wanted. */
static bool is_behind_end(const struct ky_walk *w)
{
	const struct ky_stream *s = w->stream;
	int64_t ns = w->select->to_ns;

	if (is_in_disorder(s, ns))
		ns = to_ns(s->files[0].class, s->disorder_end);
	return w->had_event && w->at_ns > ns;
}

/* Opens the next packet or the next file. Returns false at the end of the last file. */
static bool open_next(struct ky_walk *w)
{
	const struct ky_file *f = current_file(w);

	if (is_behind_end(w)) {
		end_walk(w);
	} else if (w->offset < f->size) {
		if (w->n_budgets <= w->file) {
			w->d.n_empty = EMPTY_MIN + f->size * 8;
			w->n_reread = f->size * REREAD_MAX + PACKET_MAX;
		}
		w->n_budgets = w->file + 1;
		open_packet(w);
	} else {
		drop_packet(w);
		if (w->file + 1 == w->stream->n_files) {
			w->is_doubtful |= w->end && !w->met_end;
			return false;
		}
		w->file++;
		w->offset = current_file(w)->first;
		w->is_wide = false;
		w->file_error = 0;
	}
	return true;
}

void ky_walk_advance(struct ky_walk *w)
{
	struct ky_lost *reported = lost_of(w, w->next);

	if (reported)
		reported->n = 0;
	w->next = KY_ITEM_NONE;
	while (!w->error && !w->is_ended) {
		if ((ky_unlikely(has_lost(w)) && next_lost(w)) || (w->in_packet && next_event(w)))
			return;
		if (!w->in_packet && !w->is_ended && !open_next(w))
			break;
	}
	end_damage(w, INT64_MAX);
	next_lost(w);
}

/* Goes to a bit of the current packet, of which the first bytes were read. */
static void go_to_bit(struct ky_walk *w, uint64_t bit)
{
	uint64_t skip = bit / 8 / PIECE_ALIGN * PIECE_ALIGN;

	if (bit >= w->d.end && has_more(w)) {
		uint64_t got = load_piece(w, skip, PIECE_SIZE);

		w->window = skip;
		w->d.end = KY_MIN(got * 8, w->content_bits - skip * 8);
		bit -= skip * 8;
	}
	w->record = w->d.pos = KY_MIN(bit, w->d.end);
}

/* Reads the head of the current packet again. Returns 0, -EBADMSG or -ENOMEM. */
static int read_packet_again(struct ky_walk *w)
{
	uint64_t next = w->offset;
	struct ky_packet_head p = {0};
	int r;

	if (!make_slots(w))
		return -ENOMEM;
	drop_packet(w);
	w->window = 0;
	w->offset = w->packet_offset;
	r = read_packet(w, &p);
	w->offset = next;
	if (!r)
		w->class = p.class;
	return r;
}

void ky_walk_refresh(struct ky_walk *w)
{
	const struct ky_layout *layout = &current_file(w)->trace->layout;
	bool has_event = w->next == KY_ITEM_EVENT;
	uint64_t bit = w->window * 8 + (has_event ? w->record : w->d.pos);
	uint64_t clock = has_event ? w->clock_before : w->d.clock;
	int r;

	w->n_budgets = w->file; /* the file may have grown */
	if (!w->in_packet || w->class == ky_layout_stream(layout, w->class->id))
		return;
	r = read_packet_again(w);
	if (r == -ENOMEM)
		w->error = r;
	if (r == -ENOMEM)
		return;
	go_to_bit(w, bit);
	w->d.clock = clock;
	if (!r && (!has_event || read_event(w)))
		return;
	leave_damaged(w);
	if (has_event)
		ky_walk_advance(w);
}

bool ky_walk_times(const struct ky_walk *w, int64_t *ret_begin_ns, int64_t *ret_end_ns)
{
	if (!w->last_class)
		return false;
	*ret_begin_ns = to_ns(w->last_class, w->min_clock);
	*ret_end_ns = to_ns(w->last_class, w->max_clock);
	return true;
}

const struct ky_lost *ky_walk_lost(const struct ky_walk *w)
{
	return lost_of((struct ky_walk *)w, w->next);
}

/* --- begin and end --- */

int ky_walk_peek(struct ky_walk *w, size_t file, uint64_t offset, struct ky_packet_head *ret_head)
{
	if (file != w->file)
		drop_packet(w);
	w->file = file;
	w->d.n_empty = HEAD_MAX;
	return make_slots(w) ? read_head(w, ret_head, offset, HEAD_SIZE) : -ENOMEM;
}

/* Reads the head of the packet before the first one, as the base of the counts of losses. */
static void recall_packet(struct ky_walk *w, const struct ky_place *place)
{
	struct ky_packet_head p;

	if (place->has_before && !ky_walk_peek(w, place->before_file, place->before, &p)) {
		w->class = p.class;
		count_lost(w, false);
	}
	drop_packet(w);
	if (w->had_discarded)
		w->last_discarded = place->discarded;
	w->file = place->file;
	w->offset = place->offset;
}

/* The last place that begins before ns; the first place if none does. */
static size_t find_place(const struct ky_stream *s, int64_t ns)
{
	size_t first;

	ky_bisect(first, s->n_places, k, ky_place_ns(s, &s->places[k]) < ns);
	return first ? first - 1 : 0;
}

/*
 * Looks the ends of the slice up in the index. A stream whose records have no times is in the first
 * slice.
 */
static void find_ends(struct ky_walk *w)
{
	const struct ky_select *select = w->select;
	const struct ky_stream *s = w->stream;
	int64_t begin_ns = select->from_ns;

	if (!s->n_places) {
		if (select->has_slice_begin)
			end_walk(w);
		return;
	}
	if (is_in_disorder(s, begin_ns))
		begin_ns = to_ns(s->files[0].class, s->disorder_begin);
	w->before_slice = select->has_slice_begin;
	if (select->has_slice_begin)
		begin_ns = KY_MAX(begin_ns, select->slice_begin_ns);
	if (select->has_slice_end)
		w->end = &s->places[find_place(s, select->slice_end_ns)];
	if (begin_ns > INT64_MIN)
		recall_packet(w, &s->places[find_place(s, begin_ns)]);
}

void ky_walk_init(struct ky_walk *w, const struct ky_stream *s, const struct ky_select *select,
	struct ky_packets *packets, uint64_t *counts)
{
	const struct ky_file *f = &s->files[0];

	*w = (struct ky_walk){.stream = s, .select = select, .packets = packets, .counts = counts};
	w->next = KY_ITEM_UNOPENED;
	w->next_ns = INT64_MIN;
	find_ends(w);
	if (f->class && f->class->clock && !w->file && !w->offset)
		w->next_ns = to_ns(f->class, f->begin);
}

void ky_walk_deinit(struct ky_walk *w)
{
	drop_packet(w);
	free(w->d.slots);
	free(w->packet_context.v);
	*w = (struct ky_walk){0};
}

void ky_file_deinit(struct ky_file *f)
{
	ky_handle_deinit(&f->handle, f->files);
	free(f->path);
	*f = (struct ky_file){0};
}

void ky_stream_deinit(struct ky_stream *s)
{
	for (size_t i = 0; i < s->n_files; i++)
		ky_file_deinit(&s->files[i]);
	free(s->files);
	free(s->places);
	*s = (struct ky_stream){0};
}
