/* SPDX-License-Identifier: MIT */
#include "reader/index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "ctf/index.h"
#include "reader/walk-packets.h"
#include "reader/walk.h"

struct builder {
	struct ky_stream *stream;
	struct ky_walk walk;
	bool has_times; /* records without times are in no order that an index could have */
	int error;
};

/* A packet as an index file describes it. */
struct entry {
	uint64_t offset, size; /* bytes */
	uint64_t begin, end, discarded;
};

static void add_place(struct builder *b, struct ky_place place)
{
	struct ky_stream *s = b->stream;

	if (s->n_places == s->max_places) {
		size_t max = s->max_places ? 2 * s->max_places : 8;
		struct ky_place *more = reallocarray(s->places, max, sizeof(*more));

		if (!more) {
			b->error = -ENOMEM;
			return;
		}
		s->places = more;
		s->max_places = max;
	}
	s->places[s->n_places++] = place;
}

static void add_packet(struct builder *b, uint32_t file, const struct entry *e)
{
	struct ky_stream *s = b->stream;
	const struct ky_place *last = s->n_places ? &s->places[s->n_places - 1] : NULL;
	const struct ky_stream_class *class = s->files[0].class;

	if (s->has_packets && e->begin < s->last_end) {
		s->disorder_begin = s->disorder_end ? KY_MIN(s->disorder_begin, e->begin)
						    : e->begin;
		s->disorder_end = UINT64_MAX;
	} else if (s->disorder_end == UINT64_MAX) {
		/* Heads need not say when the packets before end: this one is behind them. */
		s->disorder_end = e->begin;
	}
	s->last_begin = KY_MAX(s->last_begin, e->begin);
	if (b->has_times &&
		(!last || last->file != file || e->offset - last->offset >= KY_PLACE_SIZE))
		add_place(b, (struct ky_place){.begin = s->last_begin,
				     .offset = e->offset,
				     .before = s->last_offset,
				     .discarded = s->discarded.last,
				     .file = file,
				     .before_file = s->last_file,
				     .has_before = s->has_packets});
	if (class && class->discarded_bits)
		s->n_discarded += ky_counter_rise(
			&s->discarded, e->discarded, class->discarded_bits);
	s->last_end = KY_MAX(s->last_end, KY_MAX(e->begin, e->end));
	s->has_packets = true;
	s->last_file = file;
	s->last_offset = e->offset;
	s->n_packets++;
	s->index_offset = e->offset + e->size;
}

/* --- heads of packets --- */

/* Reads the head of the packet at the offset. Returns 0, -EBADMSG or -ENOMEM. */
static int read_head(struct builder *b, uint32_t file, uint64_t offset, struct entry *ret)
{
	const struct ky_decoder *d = &b->walk.d;
	struct ky_packet_head p;
	int r = ky_walk_peek(&b->walk, file, offset, &p);

	if (r < 0)
		return r;
	*ret = (struct entry){.offset = offset,
		.size = p.packet_bits / 8,
		.begin = ky_role_or(d, KY_ROLE_TIMESTAMP_BEGIN, b->stream->last_begin),
		.end = ky_role_or(d, KY_ROLE_TIMESTAMP_END, 0),
		.discarded = ky_role_or(d, KY_ROLE_DISCARDED, b->stream->discarded.last)};
	return 0;
}

/* True if the file may end within the head at the offset, because it is being written. */
static bool may_be_cut(const struct ky_file *f, uint64_t offset)
{
	return f->size - offset < KY_PLACE_SIZE;
}

/*
 * Adds packets from their heads. Behind a head that is none, or that states more bytes than the
 * file has, it searches for the next one. is_growing: a packet that is not whole is left for later.
 */
static void add_heads(struct builder *b, uint32_t file, bool is_growing)
{
	struct ky_stream *s = b->stream;
	struct ky_file *f = &s->files[file];

	while (!b->error && s->index_offset < f->size) {
		uint64_t rest = f->size - s->index_offset;
		struct entry e;
		int r = read_head(b, file, s->index_offset, &e);

		if (is_growing && (r ? may_be_cut(f, s->index_offset) : e.size > rest)) {
			f->size = s->index_offset;
			break;
		}
		b->error = r == -ENOMEM ? r : 0;
		if (!r)
			add_packet(b, file, &e);
		if (!b->error && (r || e.size > rest)) {
			uint64_t next = ky_walk_find_head(&b->walk, f->size - rest);

			if (next == f->size)
				break;
			s->index_offset = next;
		}
	}
}

/* --- index files --- */

/* The head of LTTng's index files, big-endian. Entries follow. */
struct lttng_header {
	uint32_t magic, major, minor, entry_size;
};

/* The part of LTTng's entries that all versions have, big-endian. */
struct lttng_entry {
	uint64_t offset, packet_bits, content_bits, begin, end, discarded, stream_id;
};

#define LTTNG_MAGIC 0xc1f1dcc1u

#define CHUNK_SIZE     ((size_t)64 << 10)
#define MAX_ENTRY_SIZE 256

/* An index file, which is read in pieces, and how its entries are read. */
struct index_file {
	int fd;
	size_t first, entry_size; /* bytes */
	uint64_t n;		  /* entries */
	struct entry (*parse)(const char *at);
	uint64_t chunk_at; /* chunk holds chunk_n entries from this one on */
	uint64_t chunk_n;
	char chunk[CHUNK_SIZE];
};

/* Opens DIR/index/NAME and the suffix, of DIR/NAME, and reads its header. */
static bool open_index(
	struct index_file *x, const struct ky_file *f, const char *suffix, void *header, size_t n)
{
	const char *slash = strrchr(f->path, '/');
	_cleanup_free_ char *path = NULL;
	struct stat st;

	if (!slash || asprintf(&path, "%.*s/index/%s%s", (int)(slash - f->path), f->path, slash + 1,
			      suffix) < 0)
		path = NULL;
	x->first = n;
	x->fd = path ? ky_file_open_at(AT_FDCWD, path) : -1;
	return x->fd >= 0 && !fstat(x->fd, &st) && pread(x->fd, header, n, 0) == (ssize_t)n &&
	       (x->n = (uint64_t)st.st_size - n);
}

static struct entry parse_kymo(const char *at)
{
	struct ky_index_entry e;

	memcpy(&e, at, sizeof(e));
	return (struct entry){e.offset, e.size, e.timestamp_begin, e.timestamp_end, e.discarded};
}

static struct entry parse_lttng(const char *at)
{
	struct lttng_entry e;
	uint64_t bits;

	memcpy(&e, at, sizeof(e));
	bits = be64toh(e.packet_bits);
	return (struct entry){be64toh(e.offset), bits % 8 ? 0 : bits / 8, be64toh(e.begin),
		be64toh(e.end), be64toh(e.discarded)};
}

static bool open_kymo_index(struct index_file *x, const struct ky_file *f)
{
	struct ky_index_header h;

	x->entry_size = sizeof(struct ky_index_entry);
	x->parse = parse_kymo;
	return open_index(x, f, ".kyx", &h, sizeof(h)) && le32toh(h.magic) == KY_INDEX_MAGIC &&
	       le32toh(h.version) == KY_INDEX_VERSION && le32toh(h.entry_size) == x->entry_size;
}

static bool open_lttng_index(struct index_file *x, const struct ky_file *f)
{
	struct lttng_header h;

	x->parse = parse_lttng;
	if (!open_index(x, f, ".idx", &h, sizeof(h)))
		return false;
	x->entry_size = be32toh(h.entry_size);
	return be32toh(h.magic) == LTTNG_MAGIC && be32toh(h.major) == 1 &&
	       x->entry_size >= sizeof(struct lttng_entry) && x->entry_size <= MAX_ENTRY_SIZE;
}

/* Reads entry i. Returns false if it cannot be read. */
static bool get_entry(struct index_file *x, uint64_t i, struct entry *ret)
{
	if (i - x->chunk_at >= x->chunk_n) {
		ssize_t n = pread(x->fd, x->chunk, CHUNK_SIZE / x->entry_size * x->entry_size,
			(off_t)(x->first + i * x->entry_size));

		x->chunk_at = i;
		x->chunk_n = n < 0 ? 0 : (size_t)n / x->entry_size;
	}
	if (i - x->chunk_at >= x->chunk_n)
		return false;
	*ret = x->parse(x->chunk + (i - x->chunk_at) * x->entry_size);
	return true;
}

/* Counts the entries of packets that follow each other and are in the file. *ret_last: the last. */
static uint64_t count_entries(struct index_file *x, const struct ky_file *f, struct entry *ret_last)
{
	struct entry e = {0}, last = {0};
	uint64_t i = 0, offset = 0;

	for (; i < x->n && get_entry(x, i, &e); i++, last = e) {
		if (e.offset != offset || !e.size || e.size > f->size - offset ||
			e.begin < last.begin)
			break;
		offset += e.size;
	}
	*ret_last = last;
	return i;
}

/* True if an entry agrees with the head of its packet. */
static bool is_right(struct builder *b, uint32_t file, const struct entry *e)
{
	struct entry head;
	int r = read_head(b, file, e->offset, &head);

	b->error = r == -ENOMEM ? r : b->error;
	return !r && head.size == e->size && head.begin == e->begin &&
	       head.discarded == e->discarded;
}

/*
 * Adds packets from an index file. Its entries must lead from packet to packet, and the last one
 * must agree with the head of its packet.
 */
static void add_entries(struct builder *b, uint32_t file)
{
	const struct ky_file *f = &b->stream->files[file];
	struct index_file *x = calloc(1, sizeof(*x));
	struct entry e;
	bool is_there;
	uint64_t n;

	if (!x) {
		b->error = -ENOMEM;
		return;
	}
	is_there = f->trace->is_kymo ? open_kymo_index(x, f) : open_lttng_index(x, f);
	x->n = is_there ? x->n / x->entry_size : 0;
	n = count_entries(x, f, &e);
	if (n && !is_right(b, file, &e))
		n = 0;
	for (uint64_t i = 0; i < n && !b->error && get_entry(x, i, &e); i++) {
		if (e.offset >= f->first)
			add_packet(b, file, &e);
	}
	ky_close(x->fd);
	free(x);
}

/* Adds the packets of a file that the index does not have. */
static void add_file(struct builder *b, uint32_t file, bool is_growing)
{
	struct ky_stream *s = b->stream;

	if (file > s->index_file || !s->has_packets) {
		s->index_file = file;
		s->index_offset = s->files[file].first;
		if (b->has_times && !s->files[file].data)
			add_entries(b, file);
	}
	add_heads(b, file, is_growing);
}

int ky_index_build(struct ky_stream *s, bool is_growing, struct ky_packets *packets)
{
	const struct ky_stream_class *class = s->files[0].class;
	struct builder b = {.stream = s, .has_times = class && class->clock};
	struct ky_select all = KY_SELECT_ALL;

	s->has_index = true;
	for (size_t i = s->index_file; i < s->n_files; i++)
		s->files[i].size = s->files[i].size_on_disk;
	ky_walk_init(&b.walk, s, &all, packets, NULL);
	for (uint32_t i = s->index_file; i < s->n_files && !b.error; i++)
		add_file(&b, i, is_growing);
	ky_walk_deinit(&b.walk);
	if (b.has_times && !class->begin_bits) {
		/* The heads do not show the order. */
		s->disorder_begin = 0;
		s->disorder_end = UINT64_MAX;
	}
	if (b.has_times)
		s->end_ns = ky_trace_clock_ns(class->clock, s->last_end);
	return b.error;
}

/* --- times that heads do not have --- */

/* Goes to the first event whose time was not read: in the last packet, if heads have a begin. */
static void go_to_unread(struct ky_walk *w)
{
	const struct ky_stream *s = w->stream;
	bool has_begin = s->files[0].class->begin_bits;

	w->file = has_begin ? s->last_file : s->times_file;
	w->offset = has_begin ? s->last_offset : s->times_offset;
	w->d.clock = s->times_clock;
}

static void keep_times(struct ky_stream *s, const struct ky_walk *w)
{
	const struct ky_stream_class *class = s->files[0].class;

	s->times_file = w->file;
	s->times_offset = w->offset;
	s->times_clock = w->d.clock;
	s->times_packets = s->n_packets;
	if (!w->last_class)
		return;
	if (!s->has_begin)
		s->begin_ns = ky_trace_clock_ns(class->clock, w->min_clock);
	s->has_begin = true;
	s->last_end = KY_MAX(s->last_end, w->max_clock);
	s->end_ns = ky_trace_clock_ns(class->clock, s->last_end);
}

int ky_index_read_times(struct ky_stream *s, size_t n_classes, struct ky_packets *packets)
{
	const struct ky_stream_class *class = s->files[0].class;
	uint8_t *wanted = NULL;
	uint64_t *counts = NULL;
	struct ky_select none = KY_SELECT_ALL;
	struct ky_walk w;
	int r = 0;

	if ((class->begin_bits && class->end_bits) || s->times_packets == s->n_packets)
		return 0;
	wanted = calloc(n_classes + 1, sizeof(*wanted));
	counts = calloc(n_classes + 1, sizeof(*counts));
	if (!wanted || !counts) {
		r = -ENOMEM;
		goto out;
	}
	none.wanted = wanted;
	ky_walk_init(&w, s, &none, packets, counts);
	go_to_unread(&w);
	do
		ky_walk_advance(&w);
	while (w.next != KY_ITEM_NONE);
	keep_times(s, &w);
	r = w.error;
	ky_walk_deinit(&w);
out:
	free(wanted);
	free(counts);
	return r;
}
