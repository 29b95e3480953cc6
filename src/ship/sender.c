/* SPDX-License-Identifier: MIT */
#include "ship/sender.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "ctf/index.h"
#include "ship/files.h"
#include "ship/packer.h"

#define RECORDING  ".recording"
#define WINDOW	   (8u << 20)
#define PIECE	   (64u << 10)
#define LOOK_MS	   50	/* between two looks at a trace that changes */
#define BLIND_MS   200	/* if changes go unnoticed */
#define IDLE_MS	   5000 /* the death of a consumer changes no file */
#define WAIT_MS	   1000 /* for an answer, before it looks how long that takes */
#define LAST_WORDS 1000
#define ANSWER_MS  30000
#define ABANDON_MS 10000 /* after the consumer exited without a word that it was the end */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}

static int fail(struct sender *s, int error, const char *fmt, ...) KY_PRINTF(3, 4);

static int fail(struct sender *s, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return error;
}

// ---- the trace

static struct sender_file *file_get(struct sender *s, const char *path)
{
	struct sender_file *files;

	for (size_t i = 0; i < s->n_files; i++)
		if (!strcmp(s->files[i].path, path))
			return &s->files[i];
	if (s->n_files == SEGMENT_FILES_MAX || !segment_path_valid(path, strlen(path)))
		return NULL;
	files = reallocarray(s->files, s->n_files + 1, sizeof(*files));
	if (!files)
		return NULL;
	s->files = files;
	files[s->n_files] = (struct sender_file){.path = strdup(path), .number = -1};
	return files[s->n_files].path ? &files[s->n_files++] : NULL;
}

/* Opens a file through the directory that was opened at first, wherever that is now. */
static int file_open(const struct sender *s, const char *path)
{
	const int flags = (s->spool_max ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC;
	const size_t n = strcspn(path, "/");

	for (unsigned i = 0; path[n] && i < s->n_tops; i++)
		if (strlen(s->tops[i].name) == n && !memcmp(s->tops[i].name, path, n))
			return openat(s->tops[i].fd, path + n + 1, flags);
	return openat(s->trace, path, flags);
}

static bool is_top(const struct sender *s, const char *name)
{
	for (unsigned i = 0; i < s->n_tops; i++)
		if (!strcmp(s->tops[i].name, name))
			return true;
	return false;
}

/* Opens directories that have come since. */
static int find_tops(struct sender *s)
{
	int copy = openat(s->trace, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;

	if (!d) {
		ky_close(copy);
		return -errno;
	}
	watch_add(&s->watch, s->trace, ".");
	while ((e = readdir(d)) && s->n_tops < SENDER_TOPS_MAX) {
		int fd;

		if (e->d_name[0] == '.' || !strcmp(e->d_name, "archives") || is_top(s, e->d_name))
			continue;
		fd = openat(s->trace, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		snprintf(s->tops[s->n_tops].name, sizeof(s->tops[0].name), "%s", e->d_name);
		s->tops[s->n_tops++].fd = fd;
	}
	closedir(d);
	return 0;
}

/* Have the directories been moved, by a rotation, or removed? */
static bool are_moved(const struct sender *s)
{
	struct stat there, mine;

	for (unsigned i = 0; i < s->n_tops; i++)
		if (fstat(s->tops[i].fd, &mine) < 0 ||
			fstatat(s->trace, s->tops[i].name, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
			mine.st_ino != there.st_ino)
			return true;
	return false;
}

bool sender_is_recorded(int trace)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(trace, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static void read_watermark(struct sender *s)
{
	_cleanup_close_ int fd = openat(s->trace, KY_WATERMARK_NAME, O_RDONLY | O_CLOEXEC);

	s->has_watermark = fd >= 0 && pread(fd, &s->watermark, sizeof(s->watermark), 0) ==
					      sizeof(s->watermark);
}

/* The identifier stays with the directory: it is made by the first who ships it. */
static int take_id(struct sender *s)
{
	const int dir = s->n_tops ? s->tops[0].fd : s->trace;
	_cleanup_close_ int fd = openat(
		dir, RECORDING, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return -errno;
	if (pread(fd, s->id, sizeof(s->id), 0) == sizeof(s->id))
		return 0;
	if (getrandom(s->id, sizeof(s->id), 0) != sizeof(s->id))
		return -EIO;
	return pwrite(fd, s->id, sizeof(s->id), 0) == sizeof(s->id) ? 0 : -errno;
}

/* Directories in a fixed order, that of the first which has an identifier, or of names. */
static void sort_tops(struct sender *s)
{
	for (unsigned i = 1; i < s->n_tops; i++) {
		const bool has = !faccessat(s->tops[i].fd, RECORDING, F_OK, 0);
		const bool first_has = !faccessat(s->tops[0].fd, RECORDING, F_OK, 0);

		if (has == first_has ? strcmp(s->tops[i].name, s->tops[0].name) < 0 : has) {
			const typeof(s->tops[0]) t = s->tops[0];

			s->tops[0] = s->tops[i];
			s->tops[i] = t;
		}
	}
}

int sender_init(struct sender *s, int trace, const char *name, bool once)
{
	int ret;

	*s = (struct sender){.trace = trace, .once = once};
	snprintf(s->name, sizeof(s->name), "%s", name);
	watch_init(&s->watch);
	ret = find_tops(s);
	if (!ret && !s->n_tops && faccessat(trace, "metadata", F_OK, 0) < 0)
		return -ENOENT;
	sort_tops(s);
	return ret ? ret : take_id(s);
}

void sender_deinit(struct sender *s)
{
	for (unsigned i = 0; i < s->n_tops; i++)
		close(s->tops[i].fd);
	watch_deinit(&s->watch);
	for (size_t i = 0; i < s->n_files; i++)
		free(s->files[i].path);
	free(s->files);
}

struct visit {
	struct sender *s;
	const char *top; /* "": the trace's directory */
};

static int visit_file(void *context, const char *path)
{
	const struct visit *v = context;
	char whole[PATH_MAX];

	if (!*v->top && strchr(path, '/'))
		return 0; /* of a directory that has a walk of its own */
	snprintf(whole, sizeof(whole), "%s%s%s", v->top, *v->top ? "/" : "", path);
	return file_get(v->s, whole) ? 0 : -ENAMETOOLONG;
}

static void enter_directory(void *context, int dir)
{
	const struct visit *v = context;

	watch_add(&v->s->watch, dir, ".");
}

static void file_lost(struct sender *s, struct sender_file *f)
{
	if (!f->lost && f->sent < f->counts)
		s->n_lost++;
	f->lost = true;
}

/* How much of a stream, and of its index, counts. */
static void look_at_stream(struct sender *s, const char *path)
{
	char name[SEGMENT_PATH_MAX + 16];
	_cleanup_close_ int fd = file_open(s, path);
	_cleanup_close_ int index = -1;
	uint64_t size, indexed;
	struct sender_file *f;
	struct stat st;

	if (!files_index_of(path, name, sizeof(name)))
		return;
	index = file_open(s, name);
	if (fd < 0 || fstat(fd, &st) < 0) {
		file_lost(s, file_get(s, path));
		return;
	}
	size = (uint64_t)st.st_size;
	indexed = index < 0 ? 0 : files_indexed(index, size, NULL);
	f = file_get(s, path);
	f->counts = KY_MAX(f->counts, s->final ? size : indexed);
	f = index < 0 ? NULL : file_get(s, name);
	if (f && files_indexed(index, size, &indexed))
		f->counts = KY_MAX(f->counts, indexed);
}

static void look_at_other(struct sender *s, struct sender_file *f)
{
	_cleanup_close_ int fd = file_open(s, f->path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		file_lost(s, f);
		return;
	}
	if (strcmp(f->path + strlen(f->path) - KY_MIN(strlen(f->path), strlen("metadata")),
		    "metadata") ||
		s->final)
		f->counts = KY_MAX(f->counts, (uint64_t)st.st_size);
	else if ((uint64_t)st.st_size > f->read)
		f->counts = KY_MAX(f->counts, files_readable(fd, f->counts, (uint64_t)st.st_size));
	f->read = (uint64_t)st.st_size;
}

static bool has_index(const struct sender_file *f)
{
	char name[SEGMENT_PATH_MAX + 16];

	return files_index_of(f->path, name, sizeof(name));
}

static void add_sizes(struct sender *s)
{
	s->size = s->acked = 0;
	for (size_t i = 0; i < s->n_files; i++) {
		s->size += s->files[i].counts;
		s->acked += KY_MIN(s->files[i].acked, s->files[i].counts);
	}
}

/* Finds out what can be sent. The watermark first: all that it speaks of is in the files then. */
static int look(struct sender *s, bool final, bool moved)
{
	struct visit v = {.s = s, .top = ""};
	int ret;

	s->final = final;
	s->moved = moved;
	if (!moved) {
		read_watermark(s);
		ret = find_tops(s);
		if (ret < 0)
			return fail(s, ret, "%s: %s", s->name, strerror(-ret));
	}
	ret = s->n_tops ? 0 : files_walk(s->trace, visit_file, enter_directory, &v);
	for (unsigned i = 0; !ret && i < s->n_tops; i++) {
		v.top = s->tops[i].name;
		ret = files_walk(s->tops[i].fd, visit_file, enter_directory, &v);
	}
	if (ret < 0)
		return fail(s, ret, "%s: %s", s->name, strerror(-ret));
	for (size_t i = 0; i < s->n_files; i++)
		if (has_index(&s->files[i]))
			look_at_stream(s, s->files[i].path);
	for (size_t i = 0; i < s->n_files; i++)
		if (!has_index(&s->files[i]) && (final || !files_is_index(s->files[i].path)))
			look_at_other(s, &s->files[i]);
	add_sizes(s);
	return 0;
}

// ---- a spool

/* A stream and its index, open. */
struct pair {
	int stream, index;
	uint64_t n_entries;
};

static void pair_close(struct pair *p)
{
	ky_close(p->stream);
	ky_close(p->index);
}

/* Returns false if one of them is not there. */
static bool pair_open(const struct sender *s, const char *stream, struct pair *ret)
{
	char name[SEGMENT_PATH_MAX + 16];
	struct stat st;

	*ret = (struct pair){.stream = -1, .index = -1};
	if (!files_index_of(stream, name, sizeof(name)))
		return false;
	ret->stream = file_open(s, stream);
	ret->index = file_open(s, name);
	if (ret->stream < 0 || ret->index < 0 || fstat(ret->index, &st) < 0 ||
		(uint64_t)st.st_size < ky_index_offset(1)) {
		pair_close(ret);
		return false;
	}
	ret->n_entries = ((uint64_t)st.st_size - ky_index_offset(0)) /
			 sizeof(struct ky_index_entry);
	return true;
}

static bool entry_read(const struct pair *p, uint64_t i, struct ky_index_entry *ret)
{
	return i < p->n_entries &&
	       pread(p->index, ret, sizeof(*ret), (off_t)ky_index_offset(i)) == sizeof(*ret);
}

/* Returns the number of the entry of the first packet that ends behind `at`. */
static uint64_t entry_behind(const struct pair *p, uint64_t at)
{
	uint64_t low = 0, high = p->n_entries;
	struct ky_index_entry e;

	while (low < high) {
		const uint64_t middle = low + (high - low) / 2;

		if (entry_read(p, middle, &e) && e.offset + e.size <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * Gives back the space of the packets of a stream that end at `end` or before. The first one does
 * not expire: babeltrace2 counts discarded events from there on.
 */
static int release(struct sender *s, struct sender_file *f, uint64_t end, bool acked)
{
	struct ky_index_entry e;
	struct pair p;
	int ret = 0;

	if (end <= f->released || !pair_open(s, f->path, &p))
		return 0;
	for (uint64_t i = entry_behind(&p, f->released);
		!ret && entry_read(&p, i, &e) && e.offset + e.size <= end; i++) {
		ret = i || acked ? spool_punch(p.stream, &e) : 0;
		f->released = e.offset + e.size;
	}
	pair_close(&p);
	return ret < 0 ? fail(s, ret, "%s: its space cannot be given back: %s", f->path,
				 strerror(-ret))
		       : 0;
}

/* The other end has these bytes of an index on its disk, and so the packets. */
static int release_acked(struct sender *s, const struct sender_file *index)
{
	char name[SEGMENT_PATH_MAX];
	struct ky_index_entry e;
	uint64_t end = 0, n;
	struct pair p;

	if (!s->spool_max || !files_is_index(index->path) || index->acked < ky_index_offset(1))
		return 0;
	files_stream_of(index->path, name, sizeof(name));
	n = (index->acked - ky_index_offset(0)) / sizeof(e);
	if (!pair_open(s, name, &p))
		return 0;
	if (entry_read(&p, n - 1, &e))
		end = e.offset + e.size;
	pair_close(&p);
	for (size_t i = 0; i < s->n_files; i++)
		if (!strcmp(s->files[i].path, name))
			return release(s, &s->files[i], end, true);
	return 0;
}

/* Returns when the oldest packet ended that takes space and was not sent on this connection. */
static uint64_t oldest_of(const struct sender *s, const struct sender_file *f, uint64_t *ret_end)
{
	uint64_t ended = UINT64_MAX;
	struct ky_index_entry e;
	struct pair p;

	if (f->lost || f->released >= f->counts || !pair_open(s, f->path, &p))
		return ended;
	if (entry_read(&p, entry_behind(&p, KY_MAX(f->released, f->sent)), &e) &&
		e.offset + e.size <= f->counts) {
		ended = e.timestamp_end;
		*ret_end = e.offset + e.size;
	}
	pair_close(&p);
	return ended;
}

/* Lets the oldest packets expire until no more wait than may. */
static int limit(struct sender *s)
{
	uint64_t waiting = 0;
	int ret = 0;

	for (size_t i = 0; s->spool_max && i < s->n_files; i++)
		if (has_index(&s->files[i]) && !s->files[i].lost)
			waiting += s->files[i].counts -
				   KY_MIN(s->files[i].counts, s->files[i].released);
	while (!ret && s->spool_max && waiting > s->spool_max) {
		struct sender_file *oldest = NULL;
		uint64_t least = UINT64_MAX, end = 0, oldest_end = 0;

		for (size_t i = 0; i < s->n_files; i++) {
			const uint64_t ended = has_index(&s->files[i])
						       ? oldest_of(s, &s->files[i], &end)
						       : UINT64_MAX;

			if (ended < least) {
				least = ended;
				oldest = &s->files[i];
				oldest_end = end;
			}
		}
		if (!oldest)
			break; /* all that waits is on its way */
		waiting -= KY_MIN(waiting, oldest_end - oldest->released);
		ret = release(s, oldest, oldest_end, false);
	}
	return ret;
}

/* Returns the events of a stream that have expired. */
static uint64_t expired_of(const struct sender *s, const struct sender_file *f)
{
	struct spool_sum sum = {0};
	struct pair p;

	if (!pair_open(s, f->path, &p))
		return 0;
	spool_add_up(&sum, p.stream, p.index, p.n_entries);
	pair_close(&p);
	return sum.events;
}

static void add_expired(struct sender *s)
{
	for (size_t i = 0; s->spool_max && i < s->n_files; i++)
		if (has_index(&s->files[i]))
			s->n_expired += expired_of(s, &s->files[i]);
}

/*
 * Changes n bytes of a stream, which begin with a packet, into what is sent of a spool. They become
 * fewer where a packet has expired, which goes in a segment of its own. Returns how many, 0 if they
 * cannot be read.
 */
static size_t change_packets(
	struct sender_file *f, const struct pair *p, uint8_t *bytes, size_t n, struct segment *g)
{
	struct ky_index_entry e;
	struct ky_ctf_packet h;

	for (uint64_t i = entry_behind(p, f->sent); entry_read(p, i, &e) && e.offset < f->sent + n;
		i++) {
		const bool expired = spool_is_hole(p->stream, &e);
		const uint64_t at = e.offset - f->sent;

		if (e.offset < f->sent)
			continue; /* a long packet, whose beginning has been sent */
		if (expired && at)
			return at;
		if (n - at < sizeof(h))
			return at;
		/* Its own events are not among those before, if it has been marked already. */
		if (spool_add_up(&f->expired, p->stream, p->index, i) < 0 ||
			(expired && spool_expire(p->index, i, &e) < 0))
			return 0;
		memcpy(&h, bytes + at, sizeof(h));
		spool_change_packet(&h, f->expired.events, expired);
		memcpy(bytes + at, &h, sizeof(h));
		if (expired) {
			g->codec = SEGMENT_ZEROS;
			g->raw = (uint32_t)(KY_MIN(e.size, (uint64_t)n) - sizeof(h));
			return sizeof(h);
		}
	}
	return n;
}

/* Likewise, bytes of an index. */
static size_t change_entries(struct sender_file *f, const struct pair *p, uint8_t *bytes, size_t n)
{
	uint64_t i = f->sent ? (f->sent - ky_index_offset(0)) / sizeof(struct ky_index_entry) : 0;
	struct ky_index_entry e;

	for (size_t at = f->sent ? 0 : ky_index_offset(0); at + sizeof(e) <= n;
		at += sizeof(e), i++) {
		if (spool_add_up(&f->expired, p->stream, p->index, i + 1) < 0)
			return 0;
		memcpy(&e, bytes + at, sizeof(e));
		spool_change_entry(&e, f->expired.events);
		memcpy(bytes + at, &e, sizeof(e));
	}
	return n;
}

/* Changes bytes of any file into what is sent. Returns how many, 0 if they cannot be read. */
static size_t change(
	struct sender *s, struct sender_file *f, uint8_t *bytes, size_t n, struct segment *g)
{
	const bool is_index = files_is_index(f->path);
	char name[SEGMENT_PATH_MAX];
	struct pair p;

	if (is_index)
		files_stream_of(f->path, name, sizeof(name));
	if (!pair_open(s, is_index ? name : f->path, &p))
		return n; /* no packet */
	n = is_index ? change_entries(f, &p, bytes, n) : change_packets(f, &p, bytes, n, g);
	pair_close(&p);
	return n;
}

int sender_limit(struct sender *s)
{
	int ret = 0;

	if (s->spool_max && !s->final)
		ret = look(s, false, are_moved(s));
	return ret ? ret : limit(s);
}

// ---- a connection

struct link {
	struct sender *s;
	int fd;
	uint32_t n_numbers;
	bool ready, ending, ended;
	uint64_t in_flight;
	uint64_t answered_ms, abandoned_ms, looked_ms, limited_ms;
	bool complete; /* all that counted when it was looked at was sent, with the watermark */
	bool changed;  /* is the trace, since it was looked at */
	/* A segment, SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX bytes; and room to compress it. */
	uint8_t *out, *spare;
	size_t n_out, out_at;
	struct packer packer;
	uint8_t in[SEGMENT_HEAD + SEGMENT_PATH_MAX];
	size_t n_in;
};

/* s->raw: zeros behind it, for SEGMENT_ZEROS; else 0. */
static void put_segment(struct link *l, struct segment *s, size_t length)
{
	const size_t packed = s->type == SEGMENT_DATA && s->codec == SEGMENT_PLAIN
				      ? packer_pack(&l->packer, l->out + SEGMENT_HEAD, length,
						l->spare + SEGMENT_HEAD)
				      : 0;

	s->raw += (uint32_t)length;
	s->crc = segment_crc(l->out + SEGMENT_HEAD, length);
	if (packed) {
		uint8_t *const raw = l->out;

		l->out = l->spare;
		l->spare = raw;
		s->codec = SEGMENT_ZSTD;
		length = packed;
	}
	s->length = (uint32_t)length;
	segment_encode(s, l->out);
	l->n_out = SEGMENT_HEAD + length;
	l->out_at = 0;
}

static void put_hello(struct link *l)
{
	struct segment s = {.type = SEGMENT_HELLO, .offset = l->s->spool_max ? SEGMENT_SYNC : 0};
	const size_t n = strlen(l->s->name);

	memcpy(l->out + SEGMENT_HEAD, l->s->id, SEGMENT_ID_SIZE);
	memcpy(l->out + SEGMENT_HEAD + SEGMENT_ID_SIZE, l->s->name, n);
	put_segment(l, &s, SEGMENT_ID_SIZE + n);
}

/*
 * Returns how many entries of a stream's index are of packets that end at `at` or before.
 * *ret_ends: the end of the last of them and of the next packet, 0 if there is none.
 */
static uint64_t entries_up_to(
	const struct sender *s, const struct sender_file *f, uint64_t at, uint64_t ret_ends[2])
{
	struct ky_index_entry e;
	struct pair p;
	uint64_t n;

	ret_ends[0] = ret_ends[1] = 0;
	if (!pair_open(s, f->path, &p))
		return 0;
	n = entry_behind(&p, at);
	if (n && entry_read(&p, n - 1, &e))
		ret_ends[0] = e.offset + e.size;
	if (entry_read(&p, n, &e))
		ret_ends[1] = e.offset + e.size;
	pair_close(&p);
	return n;
}

/* Returns the end of the last packet up to `most`, or of the next one. */
static uint64_t packet_end(const struct sender *s, const struct sender_file *f, uint64_t most)
{
	uint64_t ends[2];

	entries_up_to(s, f, most, ends);
	if (ends[0] > f->sent)
		return ends[0];
	return ends[1] ? KY_MIN(ends[1], f->counts) : most;
}

/* Lets the entries of packets that were sent follow them. */
static void index_due(struct sender *s, const struct sender_file *stream)
{
	char name[SEGMENT_PATH_MAX + 16];
	struct sender_file *index;
	uint64_t ends[2], n;

	if (!files_index_of(stream->path, name, sizeof(name)))
		return;
	n = entries_up_to(s, stream, stream->sent, ends);
	for (size_t i = 0; n && i < s->n_files; i++) {
		index = &s->files[i];
		if (!strcmp(index->path, name))
			index->due = KY_MIN(ky_index_offset(n), index->counts);
	}
}

/* Returns how many bytes of the file are sent next. */
static uint64_t piece_of(const struct sender *s, const struct sender_file *f, int fd)
{
	uint64_t end = KY_MIN(files_is_index(f->path) ? f->due : f->counts, f->sent + PIECE);

	if (end < f->counts &&
		!strcmp(strrchr(f->path, '/') ? strrchr(f->path, '/') : "", "/metadata")) {
		end = KY_MIN(f->counts, f->sent + SEGMENT_PAYLOAD_MAX);
		end = end < f->counts ? KY_MAX(files_readable(fd, f->sent, end), f->sent + 1) : end;
	} else if (end < f->counts && files_is_index(f->path)) {
		end = KY_MAX(end, ky_index_offset(1));
		end -= (end - ky_index_offset(0)) % sizeof(struct ky_index_entry);
	} else if (end < f->counts) {
		end = packet_end(s, f, end);
	}
	return KY_MIN(end - f->sent, (uint64_t)SEGMENT_PAYLOAD_MAX);
}

static void put_file(struct link *l, struct sender_file *f)
{
	struct segment s = {.type = SEGMENT_FILE, .file = l->n_numbers++};

	f->number = s.file;
	memcpy(l->out + SEGMENT_HEAD, f->path, strlen(f->path));
	put_segment(l, &s, strlen(f->path));
}

static void put_data(struct link *l, struct sender_file *f)
{
	struct segment s = {.type = SEGMENT_DATA, .file = (uint32_t)f->number, .offset = f->sent};
	_cleanup_close_ int fd = file_open(l->s, f->path);
	ssize_t n = fd < 0 ? -1
			   : pread(fd, l->out + SEGMENT_HEAD, piece_of(l->s, f, fd),
				     (off_t)f->sent);
	size_t size = n > 0 ? (size_t)n : 0;

	if (l->s->spool_max)
		size = change(l->s, f, l->out + SEGMENT_HEAD, size, &s);
	if (!size) {
		file_lost(l->s, f);
		return;
	}
	put_segment(l, &s, size);
	f->sent += s.raw;
	index_due(l->s, f);
	l->in_flight += s.raw;
}

/* Metadata and others first, then entries of packets that were sent, then streams. */
static int order_of(const struct sender_file *f)
{
	return files_is_index(f->path) ? 1 : has_index(f) ? 2 : 0;
}

/* Returns how many bytes of a file can be sent now. */
static uint64_t due_of(const struct sender_file *f)
{
	return files_is_index(f->path) ? f->due : f->counts;
}

/* When all streams have been sent, so may all of the indexes: they may be of other streams. */
static bool indexes_due(struct sender *s)
{
	bool more = false;

	for (size_t i = 0; i < s->n_files; i++) {
		struct sender_file *f = &s->files[i];

		if (!files_is_index(f->path))
			continue;
		f->due = f->counts;
		more = more || (!f->lost && f->sent < f->due);
	}
	return more;
}

/* Puts what is due of files of this order. */
static void put_due(struct link *l, int order)
{
	struct sender *s = l->s;

	for (size_t i = 0; i < s->n_files && !l->n_out; i++) {
		struct sender_file *f = &s->files[i];

		while (!l->n_out && !f->lost && f->sent < due_of(f) && order_of(f) == order) {
			if (f->number < 0)
				put_file(l, f);
			else
				put_data(l, f);
		}
	}
}

/*
 * Returns the watermark of what was sent. Nothing is added to a directory whose recording is over,
 * also if that was rotated or abandoned.
 */
static struct ky_watermark watermark_of(const struct sender *s)
{
	struct ky_watermark w = s->has_watermark ? s->watermark : (struct ky_watermark){0};

	if (s->final && (s->moved || !s->once)) {
		w.clock = UINT64_MAX;
		w.flags |= KY_WATERMARK_ENDED;
	}
	return w;
}

/* Puts the next segment of this round, if there is one. */
static void put_next(struct link *l)
{
	struct sender *s = l->s;
	struct segment m = {.type = SEGMENT_WATERMARK};
	const struct ky_watermark w = watermark_of(s);

	for (int order = 0; order < 3 && !l->n_out; order++)
		put_due(l, order);
	if (!l->n_out && indexes_due(s))
		put_due(l, 1);
	if (l->n_out)
		return;
	l->complete = true;
	if (!w.clock || !memcmp(&w, &s->sent_watermark, sizeof(w)))
		return;
	s->sent_watermark = w;
	memcpy(l->out + SEGMENT_HEAD, &w, sizeof(w));
	put_segment(l, &m, sizeof(w));
}

/* Looks whether the recording has ended, then at its files. */
static int look_again(struct link *l)
{
	struct sender *s = l->s;
	const bool moved = are_moved(s);
	bool over = moved || s->once;

	l->looked_ms = now_ms();
	l->changed = false;
	watch_take(&s->watch);
	if (!over && sender_is_recorded(s->trace)) {
		l->abandoned_ms = 0;
	} else if (!over) {
		read_watermark(s);
		if (!l->abandoned_ms)
			l->abandoned_ms = l->looked_ms;
		over = !s->has_watermark || s->watermark.flags & KY_WATERMARK_ENDED ||
		       l->looked_ms - l->abandoned_ms > ABANDON_MS;
	}
	l->complete = false;
	return look(s, over, moved);
}

/* Returns how long a complete copy may stay as it is; 0: the trace has to be looked at now. */
static uint64_t rest_ms(const struct link *l)
{
	const struct sender *s = l->s;
	const uint64_t passed = now_ms() - l->looked_ms;
	const bool ends = l->abandoned_ms ||
			  (s->has_watermark && s->watermark.flags & KY_WATERMARK_ENDED);
	const uint64_t rest = l->changed || ends ? LOOK_MS : s->watch.blind ? BLIND_MS : IDLE_MS;

	return passed < rest ? rest - passed : 0;
}

static int fill(struct link *l)
{
	struct segment end = {.type = SEGMENT_END};
	int ret = 0;

	if (l->n_out || !l->ready || l->ending || l->in_flight >= WINDOW)
		return 0;
	if (l->complete && !l->s->final && !rest_ms(l))
		ret = look_again(l);
	if (!ret && !l->complete)
		put_next(l);
	if (!ret && !l->n_out && l->s->final && !l->in_flight) {
		put_segment(l, &end, 0);
		l->ending = true;
	}
	return ret;
}

static struct sender_file *file_numbered(const struct sender *s, uint32_t number)
{
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i].number == (int64_t)number)
			return &s->files[i];
	return NULL;
}

static int handle_have(struct link *l, const struct segment *g, const uint8_t *payload)
{
	char path[SEGMENT_PATH_MAX + 1];
	struct sender_file *f;

	snprintf(path, sizeof(path), "%.*s", (int)g->length, (const char *)payload);
	f = file_get(l->s, path);
	if (f)
		f->sent = f->acked = g->offset;
	return f || !segment_path_valid(path, strlen(path)) ? 0 : -ENOMEM;
}

static int handle_ack(struct link *l, const struct segment *g)
{
	struct sender_file *f = file_numbered(l->s, g->file);

	if (!f || g->offset > f->sent || g->offset < f->acked)
		return fail(l->s, -EPROTO, "the receiver acknowledges what was not sent");
	l->in_flight -= g->offset - f->acked;
	f->acked = g->offset;
	add_sizes(l->s);
	if (l->s->progress)
		l->s->progress(l->s);
	return release_acked(l->s, f);
}

static int handle(struct link *l, const struct segment *g, const uint8_t *payload)
{
	int ret = 0;

	switch (g->type) {
	case SEGMENT_HAVE:
		return l->ready ? -EPROTO : handle_have(l, g, payload);
	case SEGMENT_READY:
		if (l->ready)
			return -EPROTO;
		l->ready = true;
		for (size_t i = 0; !ret && i < l->s->n_files; i++)
			ret = release_acked(l->s, &l->s->files[i]);
		return ret ? ret : look_again(l);
	case SEGMENT_ACK:
		return handle_ack(l, g);
	case SEGMENT_END:
		l->ended = l->ending;
		return l->ending ? 0 : -EPROTO;
	case SEGMENT_ERROR:
		return fail(l->s, -EREMOTEIO, "the receiver says: %.*s", (int)g->length,
			(const char *)payload);
	default:
		return -EPROTO;
	}
}

/* Handles what came. Returns -ECONNRESET at the end of the connection. */
static int receive(struct link *l)
{
	ssize_t n = recv(l->fd, l->in + l->n_in, sizeof(l->in) - l->n_in, MSG_DONTWAIT);
	struct segment g;
	int ret = 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -ECONNRESET;
	l->answered_ms = now_ms();
	l->n_in += (size_t)n;
	while (!ret && l->n_in >= SEGMENT_HEAD) {
		if (segment_decode(l->in, &g) < 0 || g.length > SEGMENT_PATH_MAX)
			return fail(l->s, -EPROTO, "what answers is no 'kymo receive'");
		if (l->n_in < SEGMENT_HEAD + g.length)
			break;
		ret = handle(l, &g, l->in + SEGMENT_HEAD);
		l->n_in -= SEGMENT_HEAD + g.length;
		memmove(l->in, l->in + SEGMENT_HEAD + g.length, l->n_in);
	}
	return ret;
}

/* Returns how many bytes were sent, or -errno. */
static ssize_t transmit(struct link *l)
{
	ssize_t n = send(
		l->fd, l->out + l->out_at, l->n_out - l->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	l->out_at += (size_t)n;
	if (l->out_at == l->n_out)
		l->n_out = 0;
	return n;
}

static bool awaits_answer(const struct link *l)
{
	return (l->in_flight || !l->ready || l->ending) && !l->ended;
}

/* Waits for what can be done. Returns 0 or -errno. */
static int wait_for(struct link *l, struct pollfd fds[3])
{
	const bool waits = l->n_out || l->in_flight >= WINDOW;
	const uint64_t began = now_ns();
	uint64_t rest = awaits_answer(l) || l->n_out || l->s->spool_max ? WAIT_MS : IDLE_MS;

	if (l->ready && l->complete && !l->s->final)
		rest = KY_MIN(rest, rest_ms(l));
	if (poll(fds, 3, (int)rest) < 0)
		return errno == EINTR ? 0 : -errno;
	if (waits)
		packer_account(&l->packer, now_ns(), now_ns() - began, 0);
	if (fds[2].revents)
		l->changed = watch_take(&l->s->watch) || l->changed;
	return fds[1].revents ? -ECANCELED : 0;
}

/* One turn: waits for what can be done, and does it. */
static int turn(struct link *l, int stop)
{
	int ret = fill(l); /* it may look at the trace: then the next change is waited for */
	struct pollfd fds[] = {{.fd = l->fd}, {.fd = stop, .events = POLLIN},
		{.fd = l->changed ? -1 : l->s->watch.fd, .events = POLLIN}};
	const struct pollfd *p = fds;
	ssize_t n = 0;

	if (!ret && l->s->spool_max && now_ms() - l->limited_ms > WAIT_MS) {
		l->limited_ms = now_ms();
		ret = sender_limit(l->s);
	}
	if (ret < 0)
		return ret;
	fds[0].events = (short)(POLLIN | (l->n_out ? POLLOUT : 0));
	ret = wait_for(l, fds);
	if (ret < 0)
		return ret;
	/* A receiver that fails says why before it ends. */
	if (p->revents & (POLLIN | POLLHUP | POLLERR))
		ret = receive(l);
	if (!ret && l->n_out && p->revents & POLLOUT)
		n = transmit(l);
	if (n > 0)
		packer_account(&l->packer, now_ns(), 0, (size_t)n);
	else if (n)
		ret = (int)n;
	/* The reason may have come meanwhile. */
	for (int i = 0; i < LAST_WORDS && ret == -EPIPE; i++) {
		const int why = receive(l);

		if (why)
			return why;
	}
	if (!ret && awaits_answer(l) && now_ms() - l->answered_ms > ANSWER_MS)
		return fail(l->s, -ETIMEDOUT, "no answer for %d s", ANSWER_MS / 1000);
	return ret;
}

int sender_run(struct sender *s, int fd, int stop)
{
	struct link l = {.s = s, .fd = fd, .answered_ms = now_ms()};
	int ret = 0;

	s->why[0] = '\0';
	l.out = malloc(SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX);
	l.spare = malloc(SEGMENT_HEAD + SEGMENT_PAYLOAD_MAX);
	packer_init(&l.packer, now_ns());
	if (!l.out || !l.spare)
		ret = fail(s, -ENOMEM, "no memory");
	for (size_t i = 0; i < s->n_files; i++) {
		s->files[i].sent = s->files[i].acked = s->files[i].due = 0;
		s->files[i].number = -1;
	}
	memset(&s->sent_watermark, 0, sizeof(s->sent_watermark));
	if (!ret)
		put_hello(&l);
	while (!ret && !l.ended)
		ret = turn(&l, stop);
	packer_deinit(&l.packer);
	for (size_t i = 0; i < s->n_files; i++)
		s->files[i].sent = s->files[i].acked; /* what was on its way may expire */
	if (!ret)
		add_expired(s);
	free(l.out);
	free(l.spare);
	if (ret < 0 && !*s->why)
		fail(s, ret, "%s",
			ret == -ECONNRESET || ret == -EPIPE ? "the connection was closed"
							    : strerror(-ret));
	return ret;
}
