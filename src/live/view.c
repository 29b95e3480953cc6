/* SPDX-License-Identifier: MIT */
#include "live/view.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "ctf/index.h"
#include "ctf/watermark.h"
#include "ship/files.h"
#include "ship/sender.h"

#define DIR_FLAGS      (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS     (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) /* a FIFO does not block */
#define HEAD	       sizeof(struct ky_ctf_packet)
#define RECORD_HEAD    13u /* the longest: 31, identifier, clock */
#define COMPACT_BITS   27
#define PACKET_MAX     (UINT64_C(1) << 32)
#define READ_MAX       (1u << 20)
#define DEPTH_MAX      4		     /* ust/uid/UID/ABI */
#define ABANDONED_NS   UINT64_C(30000000000) /* without a consumer */
#define METADATA_MAGIC 0x75d11d57u
#define METADATA_HEAD  37u
/*
 * babeltrace2 complains if two streams are inactive until the same nanosecond. So each one is
 * inactive until some units of the clock earlier than the one before.
 */
#define UNITS_APART 8

struct known_name {
	struct ky_hnode node;
	char name[];
};

/* --- the watermark --- */

static uint64_t now_ns(void)
{
	return ky_clock_ns(CLOCK_MONOTONIC);
}

static bool has_file(int dir, const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Returns why a file or directory could not be opened, if others can neither be; or 0: then it was
 * removed, or is none that a consumer made. One odd file of a trace does not end its viewers.
 */
static int open_error(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
}

/*
 * Does nobody record any more? It is a recording whose daemons were killed, or a snapshot, which
 * has no watermark. A shipped or received trace has .recording: its sender may come back.
 */
static bool is_abandoned(struct view *v)
{
	if (sender_is_recorded(v->root) || has_file(v->root, ".recording")) {
		v->idle_since_ns = 0;
		return false;
	}
	if (!v->idle_since_ns)
		v->idle_since_ns = now_ns();
	return now_ns() - v->idle_since_ns > ABANDONED_NS;
}

static struct ky_watermark read_watermark(struct view *v)
{
	_cleanup_close_ int fd = openat(v->root, KY_WATERMARK_NAME, FILE_FLAGS);
	const struct ky_watermark end = {UINT64_MAX, 0, KY_WATERMARK_ENDED};
	struct ky_watermark w = {0};

	if (fd < 0 && open_error())
		return v->last;
	/* The clock and the flag may be those of two successive states. */
	if (fd >= 0 && pread(fd, &w, sizeof(w), 0) == sizeof(w) &&
		(w.clock == UINT64_MAX || w.flags & KY_WATERMARK_ENDED))
		return end;
	return is_abandoned(v) ? end : w;
}

/* --- streams --- */

/* Files are found in no order. Those before the one that is read are not there any more. */
static int add_file(struct view_stream *s, char *name, const struct ky_ctf_packet *head)
{
	struct view_file *more = reallocarray(s->files, s->n_files + 1u, sizeof(*more));
	const uint32_t least = s->file + (s->next > 0);
	uint32_t i = s->n_files;

	if (!more)
		return -ENOMEM;
	s->files = more;
	for (; i > least && more[i - 1].seq > head->seq_num; i--)
		more[i] = more[i - 1];
	more[i] = (struct view_file){name, head->seq_num};
	s->n_files++;
	if (!i) {
		s->head = *head;
		/* Nothing of it has been served: a viewer counts from 0. */
		s->head.events_discarded = 0;
	}
	return 0;
}

static struct view_stream *find_stream(
	struct view *v, uint32_t trace, const struct ky_ctf_packet *head)
{
	for (uint32_t i = 0; i < v->n_streams; i++) {
		struct view_stream *s = &v->streams[i];

		if (s->n_files && s->trace == trace && s->head.stream_id == head->stream_id &&
			s->head.stream_instance_id == head->stream_instance_id)
			return s;
	}
	return NULL;
}

static int add_stream(
	struct view *v, uint32_t trace, const struct ky_ctf_packet *head, struct view_stream **ret)
{
	struct view_stream *more = reallocarray(v->streams, v->n_streams + 1u, sizeof(*more));

	if (!more)
		return -ENOMEM;
	v->streams = more;
	*ret = &more[v->n_streams++];
	**ret = (struct view_stream){.trace = trace, .fd = -1, .known = v->mark, .head = *head};
	v->n_new++;
	return 0;
}

/*
 * Streams have packets beyond the mark, which are served. The beacon is a stream without packets,
 * which is inactive until the mark: so a viewer shows nothing beyond, and can merge streams that
 * begin there.
 */
static int add_beacon(struct view *v, uint32_t trace, const struct ky_ctf_packet *head)
{
	struct ky_ctf_packet own = *head;
	struct view_stream *beacon;

	own.stream_instance_id = UINT64_MAX;
	own.seq_num = own.events_discarded = 0;
	return add_stream(v, trace, &own, &beacon);
}

static int read_entry(int index, uint64_t i, struct ky_index_entry *e)
{
	ssize_t n = pread(index, e, sizeof(*e), (off_t)ky_index_offset(i));

	return n == sizeof(*e) ? 0 : n < 0 ? -errno : -ENODATA;
}

static bool is_sound(const struct ky_ctf_packet *p, const struct ky_index_entry *e)
{
	return p->magic == KY_CTF_MAGIC && e->size >= HEAD && e->size <= PACKET_MAX &&
	       e->offset <= INT64_MAX - PACKET_MAX && p->packet_bits == e->size * 8 &&
	       p->content_bits >= HEAD * 8 && p->content_bits <= p->packet_bits;
}

/*
 * Reads the first packet's head of a stream file. Returns -ENODATA if it has none yet, or -EBADMSG
 * if this makes no sense: a packet is whole before it is in the index.
 */
static int read_first_head(const struct view_trace *t, const char *name, const char *index_name,
	struct ky_ctf_packet *ret)
{
	_cleanup_close_ int index = openat(t->index, index_name, FILE_FLAGS);
	_cleanup_close_ int fd = openat(t->dir, name, FILE_FLAGS);
	struct ky_index_entry e;

	if (index < 0 || fd < 0)
		return open_error() ? open_error() : -ENODATA;
	if (read_entry(index, 0, &e) < 0 || pread(fd, ret, HEAD, (off_t)e.offset) != (ssize_t)HEAD)
		return -ENODATA;
	return is_sound(ret, &e) ? 0 : -EBADMSG;
}

static bool is_known(const struct view_trace *t, const char *name)
{
	struct ky_hnode *n = ky_htab_first(&t->names, ky_hash(name, strlen(name)));

	for (; n; n = ky_htab_next(n))
		if (!strcmp(ky_container_of(n, struct known_name, node)->name, name))
			return true;
	return false;
}

static int add_name(struct view_trace *t, const char *name)
{
	const size_t n = strlen(name);
	struct known_name *k = malloc(sizeof(*k) + n + 1);

	if (!k)
		return -ENOMEM;
	memcpy(k->name, name, n + 1);
	if (ky_htab_add(&t->names, &k->node, ky_hash(name, n)) < 0) {
		free(k);
		return -ENOMEM;
	}
	return 0;
}

/* Adds a stream file that has a packet. */
static int found_index(struct view *v, uint32_t trace, const char *index_name)
{
	struct view_trace *t = &v->traces[trace];
	struct ky_ctf_packet head;
	char *name = strndup(index_name, strlen(index_name) - strlen(".kyx"));
	struct view_stream *s = NULL;
	int ret = name ? read_first_head(t, name, index_name, &head) : -ENOMEM;

	if (ret == -EBADMSG) { /* is not looked at again */
		v->n_damaged++;
		free(name);
		return add_name(t, index_name);
	}
	if (!ret)
		ret = add_name(t, index_name);
	if (!ret) {
		memcpy(t->uuid, head.uuid, sizeof(t->uuid));
		ret = v->n_streams ? 0 : add_beacon(v, trace, &head);
	}
	if (!ret) {
		s = find_stream(v, trace, &head);
		ret = s ? 0 : add_stream(v, trace, &head, &s);
	}
	if (!ret)
		ret = add_file(s, name, &head);
	if (ret)
		free(name);
	return ret == -ENODATA ? 0 : ret;
}

static bool is_index_name(const char *name)
{
	const size_t n = strlen(name);

	return n > 4 && *name != '.' && !strcmp(name + n - 4, ".kyx");
}

/* Opens a directory again, to read its entries from the first one on. */
static DIR *open_again(int dir)
{
	int fd = openat(dir, ".", DIR_FLAGS);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d)
		ky_close(fd);
	return d;
}

static int search_index(struct view *v, uint32_t trace)
{
	struct view_trace *t = &v->traces[trace];
	const struct dirent *e;
	int ret = 0;
	DIR *d;

	if (t->index < 0)
		t->index = openat(t->dir, "index", DIR_FLAGS);
	d = t->index < 0 ? NULL : open_again(t->index);
	if (!d)
		return open_error();
	while (!ret && (e = readdir(d)))
		if (is_index_name(e->d_name) && !is_known(t, e->d_name))
			ret = found_index(v, trace, e->d_name);
	closedir(d);
	return ret;
}

/* --- traces --- */

static int add_trace(struct view *v, int dir, const struct stat *st, const char *path, bool moved)
{
	struct view_trace *more, *t;

	for (uint32_t i = 0; i < v->n_traces; i++) {
		t = &v->traces[i];
		if (t->ino == st->st_ino && t->dev == st->st_dev) {
			t->seen |= !moved;
			close(dir);
			return 0;
		}
	}
	more = reallocarray(v->traces, v->n_traces + 1u, sizeof(*more));
	if (more)
		v->traces = more;
	t = more ? &more[v->n_traces] : NULL;
	if (t)
		*t = (struct view_trace){.path = strdup(path),
			.dir = dir,
			.index = -1,
			.dev = st->st_dev,
			.ino = st->st_ino,
			.seen = !moved};
	if (!t || !t->path) {
		close(dir);
		return -ENOMEM;
	}
	v->n_traces++;
	return 0;
}

/* Adds the traces below a directory: those that have metadata. Takes dir. */
static int search_directory(struct view *v, int dir, const char *path, int depth, bool moved)
{
	const struct dirent *e;
	struct stat st;
	int ret = 0;
	DIR *d;

	if (has_file(dir, "metadata"))
		return fstat(dir, &st) < 0 ? (close(dir), -EIO)
					   : add_trace(v, dir, &st, path, moved);
	d = fdopendir(dir);
	if (!d) {
		close(dir);
		return -errno;
	}
	while (!ret && depth && (e = readdir(d))) {
		char below[PATH_MAX];
		int fd;

		if (e->d_name[0] == '.' || snprintf(below, sizeof(below), "%s/%s", path,
						   e->d_name) >= (int)sizeof(below))
			continue;
		fd = openat(dir, e->d_name, DIR_FLAGS);
		if (fd >= 0)
			ret = search_directory(v, fd, below, depth - 1, moved);
		else
			ret = open_error();
	}
	closedir(d);
	return ret;
}

static int search_chunk(struct view *v, int dir, bool moved)
{
	static const char *const parts[] = {"ust", "kernel"};
	int ret = 0;

	for (size_t i = 0; !ret && i < KY_ARRAY_SIZE(parts); i++) {
		int fd = openat(dir, parts[i], DIR_FLAGS);

		ret = fd >= 0 ? search_directory(v, fd, parts[i], DEPTH_MAX, moved) : open_error();
	}
	return ret;
}

/* The number of an archive BEGIN-END-N, from 1 on; 0 for another name. */
static uint64_t archive_number(const char *name)
{
	const char *dash = strrchr(name, '-');

	return *name != '.' && dash ? strtoull(dash + 1, NULL, 10) + 1 : 0;
}

/* Searches the archives that were made since; with `only_note`, none of them. */
static int search_archives(struct view *v, bool only_note)
{
	int fd = openat(v->root, "archives", DIR_FLAGS), ret = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	uint64_t last = v->last_archive;
	const struct dirent *e;

	if (!d) {
		ret = open_error();
		ky_close(fd);
		return ret;
	}
	while (!ret && (e = readdir(d))) {
		const uint64_t n = archive_number(e->d_name);
		_cleanup_close_ int archive = -1;

		if (n <= v->last_archive)
			continue;
		last = KY_MAX(last, n);
		if (only_note)
			continue;
		archive = openat(fd, e->d_name, DIR_FLAGS);
		ret = archive >= 0 ? search_chunk(v, archive, true) : open_error();
	}
	closedir(d);
	if (!ret)
		v->last_archive = last;
	return ret;
}

/*
 * Finds all traces and streams. A rotation moves a chunk from the directory to .moving, and from
 * there to archives. In this order it is found wherever it is.
 */
static int search_traces(struct view *v)
{
	_cleanup_close_ int moving = -1;
	int ret;

	for (uint32_t i = 0; i < v->n_traces; i++)
		v->traces[i].seen = false;
	ret = search_chunk(v, v->root, false);
	if (!ret) {
		moving = openat(v->root, KY_MOVING_NAME, DIR_FLAGS);
		ret = moving >= 0 ? search_chunk(v, moving, true) : open_error();
	}
	if (!ret)
		ret = search_archives(v, false);
	for (uint32_t i = 0; !ret && i < v->n_traces; i++) {
		v->traces[i].moved = !v->traces[i].seen;
		ret = search_index(v, i);
	}
	return ret;
}

void view_deinit(struct view *v)
{
	for (uint32_t i = 0; i < v->n_streams; i++) {
		for (uint32_t k = 0; k < v->streams[i].n_files; k++)
			free(v->streams[i].files[k].name);
		free(v->streams[i].files);
		ky_close(v->streams[i].fd);
	}
	for (uint32_t i = 0; i < v->n_traces; i++) {
		struct view_trace *t = &v->traces[i];

		ky_htab_free_all(&t->names, struct known_name, node);
		free(t->path);
		ky_close(t->dir);
		ky_close(t->index);
	}
	free(v->streams);
	free(v->traces);
}

int view_look(struct view *v)
{
	const struct ky_watermark w = read_watermark(v);
	int ret = 0;

	if (!v->searched || memcmp(&w, &v->last, sizeof(w))) {
		ret = search_traces(v);
		if (ret < 0)
			return ret;
		v->searched = true;
		v->last = w;
	}
	if (v->n_new)
		return 0;
	v->mark = KY_MAX(v->mark, w.clock);
	v->over = w.clock == UINT64_MAX;
	return 0;
}

/* --- what a viewer asks for --- */

/* Returns whether the metadata has more whole declarations than were sent. */
static bool has_metadata(struct view_trace *t)
{
	_cleanup_close_ int fd = openat(t->dir, "metadata", FILE_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return false;
	if ((uint64_t)st.st_size != t->metadata_size) {
		const uint64_t size = KY_MIN((uint64_t)st.st_size, t->sent + VIEW_METADATA_MAX);

		t->readable = files_readable(fd, t->sent, size);
		t->metadata_size = size;
	}
	return t->readable > t->sent;
}

struct view_stream *view_next_new(struct view *v)
{
	for (uint32_t i = 0; v->n_new && i < v->n_streams; i++) {
		struct view_trace *t = &v->traces[v->streams[i].trace];

		if (!v->streams[i].announced && (t->announced || has_metadata(t)))
			return &v->streams[i];
	}
	return NULL;
}

void view_announce(struct view *v, struct view_stream *s)
{
	s->announced = true;
	v->traces[s->trace].announced = true;
	v->n_new--;
}

/* Other errors than that a file was removed, as too many open files, may be over later. */
static int later_or_removed(void)
{
	return errno == ENOENT ? -ENODATA : -EAGAIN;
}

/*
 * Finds the entry of the next packet, in this file or a later one. 0, -ENODATA, -EAGAIN, or -errno
 * if the index cannot be read.
 */
static int find_entry(const struct view_trace *t, struct view_stream *s, struct ky_index_entry *e)
{
	for (; s->file < s->n_files; s->file++, s->next = 0) {
		_cleanup_close_ int index = -1;
		char name[NAME_MAX + 8];
		int ret;

		snprintf(name, sizeof(name), "%s.kyx", s->files[s->file].name);
		index = openat(t->index, name, FILE_FLAGS);
		/* A file may have been removed: of a limited number. */
		ret = index < 0 ? later_or_removed() : read_entry(index, s->next, e);
		if (ret != -ENODATA || s->file + 1 == s->n_files)
			return ret;
	}
	return -ENODATA;
}

struct packet {
	struct ky_index_entry e;
	struct ky_ctf_packet head;
	uint8_t record[RECORD_HEAD]; /* the first bytes of its first record */
	int fd;			     /* owned */
};

/* Opens the packet of an entry. 0, -EAGAIN, or -ENODATA: it was removed, or makes no sense. */
static int open_packet(const struct view_trace *t, struct view_stream *s, struct packet *p)
{
	uint8_t bytes[HEAD + RECORD_HEAD] = {0};

	p->fd = openat(t->dir, s->files[s->file].name, FILE_FLAGS);
	if (p->fd < 0)
		return later_or_removed();
	s->damaged = p->e.offset > INT64_MAX ||
		     pread(p->fd, bytes, sizeof(bytes), (off_t)p->e.offset) < (ssize_t)HEAD;
	memcpy(&p->head, bytes, HEAD);
	memcpy(p->record, bytes + HEAD, RECORD_HEAD);
	s->damaged |= !is_sound(&p->head, &p->e) || p->head.stream_id != s->head.stream_id ||
		      p->head.stream_instance_id != s->head.stream_instance_id;
	if (s->damaged)
		p->fd = ky_close(p->fd);
	return s->damaged ? -ENODATA : 0;
}

/* The clock of its first record; without one, of its end. */
static uint64_t first_clock(const struct packet *p)
{
	const uint64_t mask = (UINT64_C(1) << COMPACT_BITS) - 1;
	uint64_t clock;
	uint32_t word;

	if (!p->e.n_events)
		return p->e.timestamp_end;
	memcpy(&word, p->record, sizeof(word));
	memcpy(&clock, p->record + 5, sizeof(clock));
	if ((word & 31) == 31)
		return clock;
	clock = (p->e.timestamp_begin & ~mask) | word >> 5;
	return clock < p->e.timestamp_begin ? clock + mask + 1 : clock;
}

/*
 * Opens the next packet that ends up to a clock, if there is one. Leaves out those whose first
 * record is before what the viewer knows: if they began later, it would take 27 bits for a later
 * time.
 * Returns 0, -ENODATA if there is no further packet, or -EAGAIN if it cannot be served yet.
 */
static int next_packet(struct view *v, struct view_stream *s, uint64_t end, struct packet *p)
{
	const struct view_trace *t = &v->traces[s->trace];

	while (!s->damaged) {
		int ret = find_entry(t, s, &p->e);

		if (ret == -ENODATA || ret == -EAGAIN)
			return ret;
		if (!ret && p->e.timestamp_end > end)
			return -EAGAIN;
		s->damaged = ret < 0;
		if (!ret)
			ret = open_packet(t, s, p);
		if (ret == -EAGAIN)
			return ret;
		v->n_damaged += s->damaged;
		s->next++;
		if (!ret && first_clock(p) >= s->known)
			return 0;
		if (!ret)
			v->n_late += p->e.n_events;
		p->fd = ky_close(p->fd);
	}
	return -ENODATA;
}

static void serve_packet(struct view_stream *s, const struct packet *p, struct view_index *ret)
{
	ky_close(s->fd);
	s->fd = p->fd;
	s->at = p->e.offset;
	s->size = p->e.size;
	s->head = p->head;
	s->head.timestamp_begin = KY_MAX(p->head.timestamp_begin, s->known);
	s->known = KY_MAX(p->e.timestamp_end, s->known);
	ret->status = VIEW_OK;
	ret->begin = s->head.timestamp_begin;
	ret->end = p->e.timestamp_end;
}

/* A viewer that wants what comes from now on gets no packet that is over. */
static void skip_packets(struct view *v, struct view_stream *s)
{
	struct packet p = {.fd = -1};
	struct view_index index;

	while (!next_packet(v, s, v->mark, &p))
		serve_packet(s, &p, &index);
	s->fd = ky_close(s->fd);
	s->size = 0;
}

int view_init(struct view *v, int root, bool from_start)
{
	int ret;

	*v = (struct view){.root = root};
	if (from_start)
		return 0;
	ret = search_archives(v, true);
	if (!ret)
		ret = view_look(v);
	v->mark = v->over ? UINT64_MAX : v->last.clock;
	for (uint32_t i = 0; !ret && i < v->n_streams; i++)
		skip_packets(v, &v->streams[i]);
	return ret;
}

/* Only the index of a packet can say that there are streams. An empty packet is made up for it. */
static void serve_empty(struct view_stream *s, struct view_index *ret)
{
	s->fd = ky_close(s->fd);
	s->at = 0;
	s->size = HEAD;
	s->head.timestamp_begin = s->head.timestamp_end = s->known;
	s->head.n_events = 0;
	s->head.content_bits = s->head.packet_bits = HEAD * 8;
	ret->status = VIEW_OK;
	ret->begin = ret->end = s->known;
}

static void serve_nothing(
	const struct view *v, struct view_stream *s, bool ended, struct view_index *ret)
{
	const uint64_t apart = UNITS_APART * ((uint64_t)(s - v->streams) + 1);

	ret->status = ended ? VIEW_HUNG_UP : VIEW_RETRY;
	if (ended || v->mark < apart || v->mark - apart <= s->known)
		return;
	s->known = ret->end = v->mark - apart;
	ret->status = VIEW_INACTIVE;
}

void view_next_index(struct view *v, struct view_stream *s, struct view_index *ret)
{
	struct view_trace *t = &v->traces[s->trace];
	const bool over = v->over || (t->moved && s->n_files);
	struct packet p = {.fd = -1};
	int e = next_packet(v, s, UINT64_MAX, &p);

	*ret = (struct view_index){.status = VIEW_RETRY, .class_id = s->head.stream_id};
	if (!e)
		serve_packet(s, &p, ret);
	else if (v->n_new)
		serve_empty(s, ret);
	else if (e == -ENODATA)
		serve_nothing(v, s, over, ret);
	if (ret->status != VIEW_OK)
		return;
	ret->new_streams = v->n_new > 0;
	ret->new_metadata = has_metadata(t);
	ret->offset = s->at;
	ret->size = s->size;
	ret->content_bits = s->head.content_bits;
	ret->discarded = s->head.events_discarded;
}

int64_t view_read(
	struct view *v, struct view_stream *s, uint64_t offset, uint32_t n, struct ky_buf *to)
{
	uint64_t in = offset - s->at; /* the packet */
	ssize_t got = 0;
	char *p;

	if (offset < s->at || in >= s->size || !n)
		return -EINVAL;
	n = (uint32_t)KY_MIN(KY_MIN(s->size - in, (uint64_t)n), (uint64_t)READ_MAX);
	p = ky_buf_reserve(to, n);
	if (!p)
		return -ENOMEM;
	if (s->fd >= 0)
		got = pread(s->fd, p, n, (off_t)offset);
	if (got < (s->fd >= 0 ? (ssize_t)n : 0))
		return got < 0 ? -errno : -EIO;
	/* The head is not that of the file. */
	if (in < HEAD)
		memcpy(p, (const char *)&s->head + in, KY_MIN((size_t)n, HEAD - in));
	to->len += n;
	return n;
}

int64_t view_read_metadata(struct view *v, struct view_trace *t, struct ky_buf *to)
{
	_cleanup_close_ int fd = openat(t->dir, "metadata", FILE_FLAGS);
	uint8_t head[METADATA_HEAD] = {0};
	const uint32_t magic = METADATA_MAGIC;
	uint32_t bits;
	uint64_t n;
	char *p;

	if (fd < 0 || !has_metadata(t))
		return 0;
	n = t->readable - t->sent;
	bits = (uint32_t)(METADATA_HEAD + n) * 8;
	memcpy(head, &magic, 4);
	memcpy(head + 4, t->uuid, sizeof(t->uuid));
	memcpy(head + 24, &bits, 4);
	memcpy(head + 28, &bits, 4);
	head[35] = 1; /* CTF 1.8; no compression, encryption, checksum */
	head[36] = 8;
	ky_buf_append(to, head, sizeof(head));
	p = ky_buf_reserve(to, n);
	if (!p)
		return -ENOMEM;
	if (pread(fd, p, n, (off_t)t->sent) != (ssize_t)n)
		return -EIO;
	to->len += n;
	t->sent = t->readable;
	t->metadata_size = 0; /* is looked at again: there may be more than one reply's */
	return (int64_t)(METADATA_HEAD + n);
}
