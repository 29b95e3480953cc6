/* SPDX-License-Identifier: MIT */
#include "reader/walk-packets.h"

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

/* --- bytes of the file --- */

/* Reads n bytes at offset into a buffer, which replaces the walk's; false without any. */
static bool load_bytes(struct ky_walk *w, uint64_t offset, uint64_t n)
{
	struct ky_file *f = ky_walk_file(w);
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
	const struct ky_file *f = ky_walk_file(w);
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

bool ky_walk_fetch_piece(struct ky_walk *w, uint64_t record)
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

/* --- damage --- */

/* The magic number that may begin a packet; false if heads have none. */
static bool get_magic(const struct ky_file *f, uint32_t *ret_magic)
{
	const struct ky_node *header = f->trace->layout.packet_header;

	*ret_magic = f->trace->tsdl.big_endian ? htobe32(KY_PACKET_MAGIC)
					       : htole32(KY_PACKET_MAGIC);
	return header && header->n && header->children[0].role == KY_ROLE_MAGIC &&
	       header->children[0].size == 32;
}

/* A hole is all zeros, and no byte of a magic number is. A small trace may have huge holes. */
static uint64_t skip_hole(struct ky_file *f, uint64_t from)
{
	if (!f->data)
		from = ky_handle_skip_hole(&f->handle, f->files, f->path, from);
	return KY_MIN(from, f->size);
}

/* Returns the place of the next magic number after a damaged place: a packet may begin there. */
static uint64_t find_packet(struct ky_walk *w, uint64_t from)
{
	struct ky_file *f = ky_walk_file(w);
	uint32_t magic;
	uint64_t n;

	w->is_wide = true;
	if (!get_magic(f, &magic))
		return f->size;
	for (; from < f->size; from += n - sizeof(magic) + 1) {
		const uint8_t *found;

		from = skip_hole(f, from);
		n = fetch_bytes(w, from, HEAD_MAX);
		if (n < sizeof(magic))
			break;
		found = memmem(w->d.data, n, &magic, sizeof(magic));
		if (found)
			return from + (uint64_t)(found - w->d.data);
	}
	return f->size;
}

static void begin_damage(struct ky_walk *w)
{
	w->is_doubtful = true;
	if (w->class)
		ky_losses_begin_damage(&w->losses, ky_stream_class_ns(w->class, w->d.clock));
}

static void count_damage(struct ky_walk *w)
{
	if (!w->before_slice)
		w->n_corrupt++;
}

void ky_walk_leave_damaged(struct ky_walk *w)
{
	const struct ky_file *f = ky_walk_file(w);

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
 * Returns where the search for a head begins if the one at this offset is invalid. If the size of
 * the packet before leads to this offset, that size may be wrong: then the next packet begins
 * behind its contents. The file's size limits how much is read again for such packets in total.
 */
static uint64_t begin_search(struct ky_walk *w, uint64_t offset)
{
	uint64_t from = w->contents_end;

	w->contents_end = 0;
	if (!from || from > offset || w->contents_file != w->file || w->n_reread <= WIDE_SIZE)
		return offset + 1;
	w->n_reread -= WIDE_SIZE;
	return from;
}

/*
 * Returns the place of a packet that may follow, if the head at this offset is invalid. The next
 * head may begin within the bytes of this one: the file's size limits how much is decoded in total.
 */
static uint64_t find_next_head(struct ky_walk *w, uint64_t offset)
{
	uint64_t at;

	w->n_reread -= KY_MIN(w->d.pos / 8, w->n_reread);
	if (!w->n_reread)
		return ky_walk_file(w)->size;
	at = find_packet(w, begin_search(w, offset));
	return at == offset ? find_packet(w, offset + 1) : at;
}

/* Skips an invalid head at this offset. bits: the file has so many from there on. */
static void skip_bad_head(
	struct ky_walk *w, uint64_t offset, uint64_t bits, enum ky_head_fault fault)
{
	const struct ky_file *f = ky_walk_file(w);
	uint64_t pos = w->d.pos;

	w->offset = find_next_head(w, offset);
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
	uint64_t n = ky_walk_file(w)->trace->layout.n_slots + 1;
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
	const struct ky_file *f = ky_walk_file(w);
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
			break;
		w->is_wide = true;
		n = HEAD_MAX;
	}
	if (!r) {
		w->contents_end = offset + KY_MIN((p->content_bits + 7) / 8, rest);
		w->contents_file = w->file;
	}
	return r;
}

/* How many bytes of a packet are read at once. */
static uint64_t piece_of(const struct ky_packet_head *p, uint64_t rest)
{
	uint64_t n = (p->content_bits + 7) / 8;

	if (p->packet_bits > rest * 8)
		return SMALL_MAX;
	return n > PACKET_MAX ? PIECE_SIZE : n;
}

/* Reads the head of the packet at w->offset, and the packet, or its first piece. */
static int read_packet(struct ky_walk *w, struct ky_packet_head *p)
{
	const struct ky_file *f = ky_walk_file(w);
	uint64_t rest = f->size - w->offset, got, clock = w->d.clock;
	int r = read_head(w, p, w->offset, size_to_read(w));

	if (r < 0)
		return r;
	got = w->packet->len - (w->offset - w->packet->at);
	if (got < piece_of(p, rest) && got < rest && !w->file_error) {
		w->d.clock = clock;
		r = read_head(w, p, w->offset, piece_of(p, rest));
		got = r < 0 ? 0 : w->packet->len - (w->offset - w->packet->at);
	}
	w->content_bits = KY_MIN(p->content_bits, rest * 8);
	w->d.end = KY_MIN(got * 8, w->content_bits);
	return r;
}

void ky_walk_drop_packet(struct ky_walk *w)
{
	w->packet = ky_packet_unref(w->packet, w->packets);
}

void ky_walk_end(struct ky_walk *w)
{
	w->in_packet = false;
	w->is_ended = true;
	ky_walk_drop_packet(w);
}

/* A file that cannot be read any more, or was shortened, is damaged from here on. */
static void leave_file(struct ky_walk *w)
{
	w->offset = ky_walk_file(w)->size;
	begin_damage(w);
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
		(w->losses.discarded.is_known && w->losses.discarded.last != end->discarded))
		w->is_doubtful = true;
}

/* Whether the times of the current packet's records matter. */
static void set_limits(struct ky_walk *w)
{
	const struct ky_select *select = w->select;

	w->is_limited = select->from_ns > INT64_MIN || select->to_ns < INT64_MAX ||
			w->before_slice || ky_walk_may_end_here(w);
	w->in_range = !w->is_limited;
}

/* Limits the work that the current file may cause, once for each file. */
static void set_budgets(struct ky_walk *w)
{
	const struct ky_file *f = ky_walk_file(w);

	if (w->n_budgets <= w->file) {
		w->d.n_empty = EMPTY_MIN + f->size * 8;
		w->n_reread = f->size * REREAD_MAX + PACKET_MAX;
	}
	w->n_budgets = w->file + 1;
}

static uint64_t packets_ahead(const struct ky_walk *w, const struct ky_stream_class *class)
{
	if (class != w->class || !ky_has_role(&w->d, KY_ROLE_PACKET_SEQ))
		return 0;
	return ky_losses_packets_ahead(&w->losses, w->d.role[KY_ROLE_PACKET_SEQ], class->seq_bits);
}

/*
 * Returns the first place between two places where a packet of the stream begins whose number is
 * less than n_ahead after that of the last packet; `to` if there is none.
 */
static uint64_t find_hidden(struct ky_walk *w, uint64_t from, uint64_t to, uint64_t n_ahead)
{
	uint64_t instance = ky_role_or(&w->d, KY_ROLE_INSTANCE_ID, 0);

	for (; (from = find_packet(w, from)) < to && w->n_reread; from++) {
		struct ky_packet_head p = {0};
		int r = read_head(w, &p, from, HEAD_SIZE);
		uint64_t n = r ? 0 : packets_ahead(w, p.class);

		w->n_reread -= KY_MIN(w->d.pos / 8 + 1, w->n_reread);
		if (n && n < n_ahead && ky_role_or(&w->d, KY_ROLE_INSTANCE_ID, 0) == instance)
			return from;
	}
	return to;
}

/*
 * A damaged size may lead past packets, to the head of a later one, whose number shows that others
 * are missing. Searches for these behind the contents of the packet before, which end at `from`.
 * Returns 1 and goes to the first of them, or reads p again and returns as read_packet. p may have
 * been read in vain: the file's size limits how much of that there is.
 */
static int go_to_hidden(struct ky_walk *w, struct ky_packet_head *p, uint64_t from,
	uint64_t n_ahead, uint64_t clock)
{
	uint64_t to = w->offset;
	bool was_wide = w->is_wide;

	w->n_reread -= KY_MIN(w->packet->len, w->n_reread);
	if (!w->n_reread)
		return 0;
	w->offset = find_hidden(w, from, to, n_ahead);
	w->d.clock = clock;
	if (w->offset == to) {
		w->is_wide = was_wide;
		return read_packet(w, p);
	}
	count_damage(w);
	begin_damage(w);
	return 1;
}

/*
 * Steps over the packet at this offset, whose head was read, if the walk has met it before. Returns
 * true if it has, or without memory.
 */
static bool skip_repeated(
	struct ky_walk *w, const struct ky_packet_head *p, uint64_t offset, uint64_t clock)
{
	const struct ky_met_packet met = {.number = w->d.role[KY_ROLE_PACKET_SEQ],
		.offset = offset,
		.n_bytes = p->packet_bits / 8,
		.file = w->file};
	int r = 0;

	if (p->class->seq_bits && p->class->begin_bits)
		r = ky_met_packets_add(&w->met, w->stream, &met);
	if (!r)
		return false;
	w->error = KY_MIN(r, 0);
	w->d.clock = clock;
	w->offset = offset + met.n_bytes;
	w->n_repeated += !w->before_slice;
	w->is_doubtful = true;
	return true;
}

/*
 * A packet of Kymo begins after the last record of the packet before, and ends later. If the clock
 * at its begin contradicts that, it is damaged, and so would be the times of short records. These
 * count from the last record, or from the end of the packet before, which is not much later.
 */
static void mend_begin(struct ky_walk *w)
{
	uint64_t end = ky_role_or(&w->d, KY_ROLE_TIMESTAMP_END, 0), before = w->losses.last_end;

	if (w->d.clock >= w->clock && w->d.clock <= end)
		return;
	if (before < w->clock || before > end)
		before = w->losses.is_damaged ? 0 : w->clock;
	if (!before || before > end)
		return;
	w->d.clock = w->d.role[KY_ROLE_TIMESTAMP_BEGIN] = before;
	w->n_mended += !w->before_slice;
	w->is_doubtful = true;
}

void ky_walk_open_packet(struct ky_walk *w)
{
	const struct ky_file *f = ky_walk_file(w);
	uint64_t offset = w->offset, bits = (f->size - offset) * 8, clock = w->d.clock;
	struct ky_packet_head p = {0};
	uint64_t contents_end = w->contents_file == w->file ? w->contents_end : 0, n_ahead;
	bool had_error = w->file_error;
	int r;

	set_budgets(w);
	if (!make_slots(w))
		return;
	if (w->packet && w->packet->head)
		ky_walk_drop_packet(w);
	r = read_packet(w, &p);
	n_ahead = r ? 0 : packets_ahead(w, p.class);
	if (n_ahead > 1 && contents_end && contents_end < offset)
		r = go_to_hidden(w, &p, contents_end, n_ahead, clock);
	if (r > 0)
		return;
	if (r == -ENOMEM)
		w->error = r;
	else if (r < 0 && w->file_error)
		leave_file(w);
	else if (r < 0)
		skip_bad_head(w, offset, bits, p.fault);
	if (r < 0 || (p.packet_bits <= bits && skip_repeated(w, &p, offset, clock)))
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
	if (n_ahead == 1 && f->trace->is_kymo && w->class->begin_bits == 64)
		mend_begin(w);
	if (w->d.clock < w->clock)
		w->is_doubtful = true;
	if (!w->met_end && ky_walk_may_end_here(w))
		meet_end(w);
	w->n_packets += !w->before_slice;
	set_limits(w);
	ky_losses_add_packet(&w->losses, w->class, &w->d, !w->before_slice);
	w->end_clock = ky_role_or(&w->d, KY_ROLE_TIMESTAMP_END, 0);
}

void ky_walk_go_to_bit(struct ky_walk *w, uint64_t bit)
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

int ky_walk_read_packet_again(struct ky_walk *w)
{
	uint64_t next = w->offset;
	struct ky_packet_head p = {0};
	int r;

	if (!make_slots(w))
		return -ENOMEM;
	ky_walk_drop_packet(w);
	w->window = 0;
	w->offset = w->packet_offset;
	r = read_packet(w, &p);
	w->offset = next;
	if (!r)
		w->class = p.class;
	return r;
}

int ky_walk_peek(struct ky_walk *w, size_t file, uint64_t offset, struct ky_packet_head *ret_head)
{
	if (file != w->file)
		ky_walk_drop_packet(w);
	w->file = file;
	w->d.n_empty = HEAD_MAX;
	return make_slots(w) ? read_head(w, ret_head, offset, HEAD_SIZE) : -ENOMEM;
}

uint64_t ky_walk_find_head(struct ky_walk *w, uint64_t offset)
{
	set_budgets(w);
	return find_next_head(w, offset);
}
