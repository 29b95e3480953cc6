/* SPDX-License-Identifier: MIT */
#include "consumerd/sink/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "consumerd/sink/stream-file.h"
#include "consumerd/sink/trace-dir.h"
#include "svc/loop.h"

/* Below this, writing into the page cache costs less. */
#define DIRECT_BYTES (1u << 18)
/* A slow disk rests this many times as long as its last write took. */
#define SLOW_DISK_REST 32

struct files {
	struct sink sink;
	int root_fd; /* borrowed */
	int watermark_fd;
	bool had_link; /* root_fd */
};

struct trace_files {
	struct sink_trace trace;
	int root_fd;			   /* borrowed */
	char *dir;			   /* below it */
	int dir_fd, index_fd, metadata_fd; /* owned; -1 until they are needed */
	bool resume;
	uint64_t direct_from_ns; /* the disk is slow: nothing bypasses the page cache before */
};

struct file_stream {
	struct sink_stream stream;
	struct trace_files *trace;
	const char *base;
	uint32_t n;
	struct stream_file file;
	bool had_link; /* its file */
};

static const struct sink_ops ops;

static int write_bytes(int fd, uint64_t at, const void *bytes, size_t len)
{
	ssize_t n;

	for (; len; bytes = (const char *)bytes + n, at += (uint64_t)n, len -= (size_t)n) {
		n = pwrite(fd, bytes, len, (off_t)at);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

static bool has_link(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_nlink;
}

/*
 * Returns true for an open file or directory that somebody has removed: writes to it would succeed,
 * but nobody could read them. Some file systems count no links.
 */
static bool is_removed(bool had_link, int fd)
{
	return had_link && fd >= 0 && !has_link(fd);
}

/* --- the directory --- */

static struct files *files_of(const struct sink *sink)
{
	return ky_container_of((struct sink *)sink, struct files, sink);
}

static int root_of(const struct sink *sink)
{
	return files_of(sink)->root_fd;
}

static int files_archive(struct sink *sink, const char *archive)
{
	return *archive ? trace_dir_archive(root_of(sink), archive)
			: trace_dir_set_aside(root_of(sink));
}

static int files_discard(struct sink *sink)
{
	return trace_dir_discard(root_of(sink));
}

static bool files_has_chunk(const struct sink *sink)
{
	return trace_dir_has_chunk(root_of(sink));
}

static int files_watermark(struct sink *sink, const struct ky_watermark *watermark)
{
	int *fd = &files_of(sink)->watermark_fd, ret = trace_dir_undo_move(root_of(sink));

	/* After the recording, its user may remove it. */
	if (is_removed(files_of(sink)->had_link, root_of(sink)))
		return watermark->flags & KY_WATERMARK_ENDED ? 0 : -ENOENT;
	if (!ret && *fd < 0)
		ret = trace_dir_open_file(root_of(sink), KY_WATERMARK_NAME, O_CREAT, fd);
	return ret < 0 ? ret : write_bytes(*fd, 0, watermark, sizeof(*watermark));
}

static void files_close(struct sink *sink)
{
	ky_close(files_of(sink)->watermark_fd);
	free(files_of(sink));
}

struct sink *files_sink_new(int root_fd)
{
	struct files *files = malloc(sizeof(*files));

	if (!files)
		return NULL;
	*files = (struct files){{&ops}, root_fd, -1, has_link(root_fd)};
	return &files->sink;
}

/* --- a trace --- */

static struct trace_files *trace_of(struct sink_trace *trace)
{
	return ky_container_of(trace, struct trace_files, trace);
}

static void files_open_chunk(struct sink_trace *trace)
{
	struct trace_files *t = trace_of(trace);

	t->dir_fd = ky_close(t->dir_fd);
	t->index_fd = ky_close(t->index_fd);
	t->metadata_fd = ky_close(t->metadata_fd);
}

static void files_close_trace(struct sink_trace *trace)
{
	files_open_chunk(trace);
	free(trace_of(trace)->dir);
	free(trace_of(trace));
}

static int files_open_trace(
	struct sink *sink, const char *dir, bool resume, struct sink_trace **ret_trace)
{
	struct trace_files *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct trace_files){.trace = {&ops},
		.root_fd = root_of(sink),
		.dir = strdup(dir),
		.dir_fd = -1,
		.index_fd = -1,
		.metadata_fd = -1,
		.resume = resume};
	if (!t->dir) {
		files_close_trace(&t->trace);
		return -ENOMEM;
	}
	*ret_trace = &t->trace;
	return 0;
}

/* Opens the directories, and makes them if `create`. Does nothing if they are open. */
static int open_dirs(struct trace_files *t, bool create)
{
	int ret = t->dir_fd < 0 ? trace_dir_undo_move(t->root_fd) : 0;

	if (!ret && t->dir_fd < 0)
		ret = trace_dir_open_below(t->root_fd, t->dir, create, &t->dir_fd);
	if (!ret && t->index_fd < 0)
		ret = trace_dir_open_below(t->dir_fd, "index", create, &t->index_fd);
	return ret;
}

static int files_metadata(struct sink_trace *trace, uint64_t at, const char *text, size_t len)
{
	struct trace_files *t = trace_of(trace);
	int ret = open_dirs(t, true);

	if (!ret && t->metadata_fd < 0)
		ret = trace_dir_open_file(
			t->dir_fd, "metadata", O_CREAT | (t->resume ? 0 : O_EXCL), &t->metadata_fd);
	return ret < 0 ? ret : write_bytes(t->metadata_fd, at, text, len);
}

static int files_index(
	struct sink_trace *trace, const char *name, uint64_t at, const char *text, size_t len)
{
	struct trace_files *t = trace_of(trace);
	_cleanup_close_ int fd = -1;
	bool behind = at == SINK_BEHIND;
	int ret = open_dirs(t, true);
	struct stat st;

	if (!ret)
		ret = trace_dir_open_file(t->index_fd, name, O_CREAT, &fd);
	if (!ret && behind)
		ret = fstat(fd, &st) < 0 ? -errno : 0;
	if (ret < 0)
		return ret;
	at = behind ? (uint64_t)st.st_size : at;
	ret = write_bytes(fd, at, text, len);
	if (ret < 0 && behind && ftruncate(fd, (off_t)at) < 0)
		return -errno;
	return ret;
}

/* If this fails as well, the next try writes over the same place. */
static void files_cut_metadata(struct sink_trace *trace, uint64_t size)
{
	int fd = trace_of(trace)->metadata_fd;

	if (fd >= 0 && ftruncate(fd, (off_t)size) < 0)
		return;
}

/* --- a stream --- */

static struct file_stream *stream_of(struct sink_stream *s)
{
	return ky_container_of(s, struct file_stream, stream);
}

static struct stream_place place_of(const struct file_stream *f)
{
	return (struct stream_place){
		.dir = f->trace->dir_fd,
		.index_dir = f->trace->index_fd,
		.base = f->base,
		.n = f->n,
		.numbered = f->stream.max_size,
	};
}

/* Sets *ret_place. Returns 0, or -errno: -ENOENT if the trace has no directory yet. */
static int find_place(const struct file_stream *f, struct stream_place *ret_place)
{
	int ret = open_dirs(f->trace, false);

	*ret_place = place_of(f);
	return ret;
}

static void update_size(struct file_stream *f)
{
	f->stream.size = f->file.size;
	f->stream.n_packets = f->file.n_packets;
}

/* Called when the file was opened. */
static void note_link(struct file_stream *f)
{
	f->had_link = f->file.fd >= 0 && has_link(f->file.fd);
}

static void files_close_stream(struct sink_stream *s)
{
	struct file_stream *f = stream_of(s);

	stream_file_deinit(&f->file);
	free(f);
}

static int files_open_stream(
	struct sink_trace *trace, const struct sink_name *name, struct sink_stream **ret_stream)
{
	struct file_stream *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->stream = (struct sink_stream){
		.ops = &ops, .max_size = name->max_size, .max_files = name->max_files};
	f->trace = trace_of(trace);
	f->base = name->base;
	f->n = name->n;
	stream_file_init(&f->file);
	*ret_stream = &f->stream;
	return 0;
}

static void files_begin_file(struct sink_stream *s, uint64_t number)
{
	stream_file_switch(&stream_of(s)->file, number);
	update_size(stream_of(s));
}

static int files_resume(struct sink_stream *s, const struct ky_ctf_packet *like,
	sink_visit_fn *visit, void *context)
{
	struct file_stream *f = stream_of(s);
	struct stream_place place;
	int ret = find_place(f, &place);

	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	ret = stream_file_resume(&f->file, &place, like, visit, context);
	note_link(f);
	update_size(f);
	return ret;
}

static bool worth_direct(const struct file_stream *f, const struct sink_packet *packets,
	unsigned int n, uint64_t now_ns)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < n; i++)
		bytes += packets[i].header.packet_bits / 8;
	return bytes >= DIRECT_BYTES && now_ns >= f->trace->direct_from_ns &&
	       stream_file_may_be_direct(&f->file, packets, n);
}

/*
 * If a write that bypasses the page cache takes a quarter of the time to spare, the next ones use
 * the page cache, so that no other stream waits.
 */
static int files_append(
	struct sink_stream *s, const struct sink_packet *packets, unsigned int n, uint64_t spare_ns)
{
	struct file_stream *f = stream_of(s);
	struct stream_place place = place_of(f);
	uint64_t begin = ky_loop_now_ns(), end;
	bool direct = spare_ns && worth_direct(f, packets, n, begin);
	bool was_open = f->file.fd >= 0;
	int ret;

	if (is_removed(f->had_link, f->file.fd))
		return -ENOENT;
	ret = stream_file_append(&f->file, &place, packets, n, direct);
	if (!was_open)
		note_link(f);
	end = direct ? ky_loop_now_ns() : begin;
	if (end - begin > spare_ns / 4)
		f->trace->direct_from_ns = end + SLOW_DISK_REST * (end - begin);
	update_size(f);
	return ret;
}

static int files_count(struct sink_stream *s, uint64_t number, uint64_t *ret_n_events)
{
	struct stream_place place = place_of(stream_of(s));

	return stream_file_count(&place, number, ret_n_events);
}

static void files_remove(struct sink_stream *s, uint64_t number)
{
	struct stream_place place;

	if (!find_place(stream_of(s), &place))
		stream_file_remove(&place, number);
}

static int files_set_apart(struct sink_stream *s, uint64_t number)
{
	struct stream_place place;
	int ret = find_place(stream_of(s), &place);

	if (ret < 0)
		return ret == -ENOENT ? 0 : ret;
	return stream_file_set_apart(&place, number);
}

static const struct sink_ops ops = {
	.keeps = true,
	.archive = files_archive,
	.discard = files_discard,
	.has_chunk = files_has_chunk,
	.watermark = files_watermark,
	.close = files_close,
	.open_trace = files_open_trace,
	.open_chunk = files_open_chunk,
	.metadata = files_metadata,
	.cut_metadata = files_cut_metadata,
	.index = files_index,
	.close_trace = files_close_trace,
	.open_stream = files_open_stream,
	.begin_file = files_begin_file,
	.resume = files_resume,
	.append = files_append,
	.count = files_count,
	.remove = files_remove,
	.set_apart = files_set_apart,
	.close_stream = files_close_stream,
};
