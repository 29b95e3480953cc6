/* SPDX-License-Identifier: MIT */
#include "reader/index.h"

#include <fcntl.h>

#include "base/buf.h"
#include "ctf/index.h"

#define MAX_INDEX_FILE ((size_t)256 << 20)

struct builder {
	struct ky_stream *stream;
	struct ky_walk walk;
	size_t cap;
	uint64_t begin, end, discarded; /* the highest so far */
	bool has_before;		/* a packet was added: the last one is there */
	uint32_t before_file;
	uint64_t before;
	int error;
};

static void add_place(struct builder *b, struct ky_place place)
{
	struct ky_stream *s = b->stream;

	if (s->n_places == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 8;
		struct ky_place *more = reallocarray(s->places, cap, sizeof(*more));

		if (!more) {
			b->error = -ENOMEM;
			return;
		}
		s->places = more;
		b->cap = cap;
	}
	s->places[s->n_places++] = place;
}

/* The next packet: where it lies, and what its head says. */
static void add_packet(struct builder *b, size_t file, uint64_t offset, uint64_t begin,
	uint64_t end, uint64_t discarded)
{
	struct ky_stream *s = b->stream;
	const struct ky_place *last = s->n_places ? &s->places[s->n_places - 1] : NULL;

	b->begin = KY_MAX(b->begin, begin);
	if (!last || last->file != file || offset - last->offset >= KY_PLACE_SIZE)
		add_place(b, (struct ky_place){.begin = b->begin,
				     .offset = offset,
				     .before = b->before,
				     .discarded = b->discarded,
				     .file = (uint32_t)file,
				     .before_file = b->before_file,
				     .has_before = b->has_before});
	b->discarded = KY_MAX(b->discarded, discarded);
	b->end = KY_MAX(b->end, KY_MAX(begin, end));
	b->has_before = true;
	b->before_file = (uint32_t)file;
	b->before = offset;
	s->n_packets++;
}

/*
 * From heads, from this offset on. A head that is none ends it: what follows is read from the last
 * place on.
 */
static void add_heads(struct builder *b, size_t file, uint64_t offset)
{
	const struct ky_file *f = &b->stream->files[file];
	struct ky_packet_head p;
	int r = 0;

	while (!b->error && offset < f->size) {
		const struct ky_decoder *d = &b->walk.d;

		r = ky_walk_peek(&b->walk, file, offset, &p);
		if (r < 0)
			break;
		add_packet(b, file, offset, ky_role_or(d, KY_ROLE_TIMESTAMP_BEGIN, b->begin),
			ky_role_or(d, KY_ROLE_TIMESTAMP_END, 0),
			ky_role_or(d, KY_ROLE_DISCARDED, b->discarded));
		if (p.packet_bits > (f->size - offset) * 8)
			break;
		offset += p.packet_bits / 8;
	}
	if (r == -ENOMEM)
		b->error = r;
}

/* DIR/index/NAME.kyx of DIR/NAME. */
static char *index_path(const struct ky_file *f)
{
	const char *slash = strrchr(f->path, '/');
	char *path = NULL;

	if (!slash || asprintf(&path, "%.*s/index/%s.kyx", (int)(slash - f->path), f->path,
			      slash + 1) < 0)
		return NULL;
	return path;
}

static void read_index_file(struct ky_buf *to, const struct ky_file *f)
{
	_cleanup_free_ char *path = index_path(f);
	_cleanup_close_ int fd = path ? ky_file_open_at(AT_FDCWD, path) : -1;
	ssize_t n = 1;

	while (fd >= 0 && n > 0) {
		char *p = ky_buf_reserve(to, 1 << 16);

		n = p ? read(fd, p, 1 << 16) : 0;
		to->len += n > 0 ? (size_t)n : 0;
	}
}

/* True if entry e goes on where the packets before end. */
static bool is_next(
	const struct ky_index_entry *e, uint64_t offset, uint64_t begin, const struct ky_file *f)
{
	return e->offset == offset && e->size && e->size <= f->size - offset &&
	       e->timestamp_begin >= begin;
}

/* From Kymo's index. Returns where the packets end that it has. */
static uint64_t add_entries(struct builder *b, size_t file)
{
	const struct ky_file *f = &b->stream->files[file];
	struct ky_buf index = {.max = MAX_INDEX_FILE};
	struct ky_index_header h;
	struct ky_index_entry e;
	uint64_t offset = 0;

	if (f->trace->is_kymo && !f->data)
		read_index_file(&index, f);
	if (index.len >= sizeof(h))
		memcpy(&h, index.data, sizeof(h));
	if (index.len < sizeof(h) || le32toh(h.magic) != KY_INDEX_MAGIC ||
		le32toh(h.version) != KY_INDEX_VERSION || le32toh(h.entry_size) != sizeof(e))
		index.len = 0;
	for (size_t i = 0; ky_index_offset(i + 1) <= index.len && !b->error; i++) {
		memcpy(&e, index.data + ky_index_offset(i), sizeof(e));
		if (!is_next(&e, offset, b->begin, f))
			break;
		add_packet(b, file, offset, e.timestamp_begin, e.timestamp_end, e.discarded);
		offset += e.size;
	}
	ky_buf_deinit(&index);
	return offset;
}

/* Records without times are in no order that an index could have. */
static bool has_times(const struct ky_stream *s)
{
	const struct ky_stream_class *c = s->files[0].class;

	return c && c->clock;
}

int ky_index_build(struct ky_stream *s, struct ky_packets *packets)
{
	struct builder b = {.stream = s};
	struct ky_select all = KY_SELECT_ALL;

	s->has_index = true;
	if (!has_times(s))
		return 0;
	ky_walk_init(&b.walk, s, &all, packets, NULL);
	for (size_t i = 0; i < s->n_files && !b.error; i++)
		add_heads(&b, i, add_entries(&b, i));
	ky_walk_deinit(&b.walk);
	s->n_discarded = b.discarded;
	s->end_ns = ky_clock_ns(s->files[0].class->clock, b.end);
	return b.error;
}
