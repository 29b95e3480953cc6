/* SPDX-License-Identifier: MIT */
#include "reader/reader.h"

#include <fcntl.h>

#include "ctf/watermark.h"
#include "reader/index.h"
#include "reader/join.h"
#include "reader/metadata.h"
#include "reader/search.h"
#include "reader/trace.h"

static struct ky_trace_reader *new_reader(
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = calloc(1, sizeof(*r));

	why[0] = '\0';
	if (!r) {
		snprintf(why, why_size, "cannot read the trace: no memory");
		return NULL;
	}
	r->why = why;
	r->why_size = why_size;
	ky_files_init(&r->pool);
	pthread_mutex_init(&r->lock, NULL);
	if (options)
		r->options = *options;
	r->pool.read = r->options.read;
	r->pool.read_arg = r->options.read_arg;
	return r;
}

/* The part of opening that does not depend on where the files are; closes r after an error. */
static int finish_open(struct ky_trace_reader **ret_reader, struct ky_trace_reader *r, int e)
{
	if (!e)
		e = ky_join(r);
	if (e) {
		ky_trace_reader_close(r);
		return e;
	}
	if (r->n_gaps > KY_GAPS_REPORTED)
		ky_reader_warn(r, "%zu more gap%s like these", r->n_gaps - KY_GAPS_REPORTED,
			r->n_gaps - KY_GAPS_REPORTED == 1 ? "" : "s");
	r->why = NULL;
	*ret_reader = r;
	return 0;
}

static int find_path(struct ky_trace_reader *r, const char *path)
{
	char *root = realpath(path, NULL), **at;
	int e;

	if (!root)
		return ky_reader_fail(
			r, -errno, "cannot read the trace: %s: %s", path, strerror(errno));
	at = ky_reader_grow(&r->paths, &r->n_paths, sizeof(*r->paths));
	if (!at) {
		free(root);
		return ky_reader_fail_memory(r);
	}
	*at = root;
	e = ky_search(r, root);
	if (!e)
		e = ky_reader_fail(r, -ENOENT,
			"%s is no trace: no file 'metadata' in it or in a directory below", path);
	return KY_MIN(e, 0);
}

int ky_trace_reader_open(struct ky_trace_reader **ret_reader, const char *const *paths, size_t n,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = new_reader(options, why, why_size);
	int e = 0;

	if (!r)
		return -ENOMEM;
	for (size_t i = 0; i < n && !e; i++) {
		e = find_path(r, paths[i]);
		if (!e && why[0]) {
			ky_reader_warn(r, "%s", why);
			why[0] = '\0';
		}
	}
	ky_search_end(r);
	return finish_open(ret_reader, r, e);
}

int ky_trace_reader_open_memory(struct ky_trace_reader **ret_reader, const void *metadata,
	size_t metadata_size, const void *stream, size_t stream_size,
	const struct ky_trace_reader_options *options, char *why, size_t why_size)
{
	struct ky_trace_reader *r = new_reader(options, why, why_size);
	struct ky_buf text = {0};
	struct ky_trace *t;
	struct ky_file *f;
	int e;

	if (!r)
		return -ENOMEM;
	t = ky_trace_new(r, "memory");
	e = t ? ky_metadata_text(&text, metadata, metadata_size) : -ENOMEM;
	if (e < 0)
		ky_reader_fail(r, e, "cannot read the trace: its metadata is damaged");
	else
		e = ky_trace_describe(r, t, &text, 0);
	ky_buf_deinit(&text);
	if (e)
		ky_trace_free(t);
	else
		e = ky_trace_keep(r, t);
	f = !e && stream_size ? ky_reader_grow(&r->files, &r->n_files, sizeof(*f)) : NULL;
	if (f) {
		*f = (struct ky_file){.trace = t, .data = stream, .size = stream_size};
		f->size_on_disk = stream_size;
		ky_handle_init(&f->handle);
		f->files = &r->pool;
		f->path = strdup("memory/stream");
		ky_file_probe(f, stream, stream_size);
		if (!f->class)
			ky_search_packet(f);
	}
	if (!e && stream_size && (!f || !f->path))
		e = ky_reader_fail_memory(r);
	return finish_open(ret_reader, r, e);
}

int ky_trace_reader_refresh(struct ky_trace_reader *r)
{
	char why[160] = "";
	int e;

	if (!r->n_paths)
		return 0;
	r->why = why;
	r->why_size = sizeof(why);
	r->has_changed = false;
	e = ky_search_again(r);
	if (!e)
		e = ky_join(r);
	r->why = NULL;
	r->generation += r->has_changed;
	return e ? e : r->has_changed;
}

bool ky_trace_dir_is_recorded(const char *dir)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_free = fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK;

	ky_close(fd);
	return !is_free;
}

/* The trace is somewhere below the directory that its session writes into. */
static bool is_recorded(const struct ky_trace *t)
{
	char *dir = strdup(t->dir), *slash;
	bool is = false;

	while (dir && !is && (slash = strrchr(dir, '/')) && slash > dir) {
		is = ky_trace_dir_is_recorded(dir);
		*slash = '\0';
	}
	free(dir);
	return is;
}

int ky_trace_reader_is_recorded(const struct ky_trace_reader *r)
{
	bool is_known = true;

	for (size_t i = 0; i < r->n_traces; i++) {
		if (r->traces[i]->is_kymo && is_recorded(r->traces[i]))
			return 1;
		is_known = is_known && r->traces[i]->is_kymo;
	}
	return is_known ? 0 : -ENOTSUP;
}

struct ky_trace_reader *ky_trace_reader_close(struct ky_trace_reader *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->n_streams; i++) {
		ky_stream_deinit(r->streams[i]);
		free(r->streams[i]);
	}
	for (size_t i = 0; i < r->n_files; i++)
		free(r->files[i].path);
	for (size_t i = 0; i < r->n_traces; i++)
		ky_trace_free(r->traces[i]);
	for (size_t i = 0; i < r->n_gaps; i++)
		free(r->gaps[i]);
	free((void *)r->gaps);
	ky_files_deinit(&r->pool);
	pthread_mutex_destroy(&r->lock);
	for (size_t i = 0; i < r->n_paths; i++)
		free(r->paths[i]);
	free(r->paths);
	free(r->classes);
	free(r->streams);
	free(r->files);
	free(r->traces);
	free(r);
	return NULL;
}

bool ky_trace_reader_complete_from(const struct ky_trace_reader *r, int64_t *ret_ns)
{
	bool any = false;

	for (size_t i = 0; i < r->n_streams; i++) {
		int64_t ns;

		if (!ky_stream_is_cut(r->streams[i], &ns))
			continue;
		*ret_ns = any ? KY_MAX(*ret_ns, ns) : ns;
		any = true;
	}
	return any;
}

static bool has_times(const struct ky_stream *s)
{
	return s->files[0].class && s->files[0].class->clock;
}

/* The index of a stream without times has no places, but numbers of packets and losses. */
static int build_indexes(struct ky_trace_reader *r, bool also_without_times)
{
	struct ky_packets packets = {0};
	int e = 0;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_streams && !e; i++) {
		struct ky_stream *s = r->streams[i];

		if (!s->has_index && (also_without_times || has_times(s)))
			e = ky_index_build(s, false, &packets);
	}
	pthread_mutex_unlock(&r->lock);
	ky_packets_deinit(&packets);
	return e;
}

int ky_trace_reader_index(struct ky_trace_reader *r)
{
	return build_indexes(r, false);
}

/* Reads the times of streams that have places and no times in the heads of their packets. */
static int read_times(struct ky_trace_reader *r)
{
	struct ky_packets packets = {0};
	int e = 0;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->n_streams && !e; i++) {
		if (r->streams[i]->n_places)
			e = ky_index_read_times(r->streams[i], r->n_classes, &packets);
	}
	pthread_mutex_unlock(&r->lock);
	ky_packets_deinit(&packets);
	return e;
}

/* Gets the begin of the first packet, or of the first event if packets have none. */
static bool begin_of(const struct ky_stream *s, int64_t *ret_ns)
{
	const struct ky_file *f = &s->files[0];

	if (!s->n_places || (!f->class->begin_bits && !s->has_begin))
		return false;
	*ret_ns = f->class->begin_bits ? ky_trace_clock_ns(f->class->clock, f->begin) : s->begin_ns;
	return true;
}

int ky_trace_reader_sums(struct ky_trace_reader *r, struct ky_reader_sums *ret)
{
	struct ky_reader_sums sums = {0};

	if (build_indexes(r, true) < 0 || read_times(r) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_stream *s = r->streams[i];
		int64_t ns;

		sums.n_packets += s->n_packets;
		sums.n_bytes += s->n_bytes;
		sums.n_discarded += s->n_discarded;
		if (!begin_of(s, &ns))
			continue;
		sums.begin_ns = sums.has_times ? KY_MIN(sums.begin_ns, ns) : ns;
		sums.end_ns = sums.has_times ? KY_MAX(sums.end_ns, s->end_ns) : s->end_ns;
		sums.has_times = true;
	}
	*ret = sums;
	return 0;
}
