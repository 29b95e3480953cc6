/* SPDX-License-Identifier: MIT */
#include "reader/join.h"

#include <stdlib.h>
#include <string.h>

#include "reader/chunks.h"
#include "reader/index.h"
#include "reader/search.h"
#include "reader/trace.h"

static uint64_t class_id(const struct ky_file *f)
{
	return f->class ? f->class->id : UINT64_MAX;
}

/*
 * 0: the same stream. Chunks of one trace have its UUID and its host: programs that were built for
 * many hosts may have one UUID. Without a UUID, each directory is a trace.
 */
static int compare_identity(const struct ky_file *x, const struct ky_file *y)
{
	int c = ky_trace_compare_uuids(&x->trace->tsdl, &y->trace->tsdl);

	if (!c)
		c = strcmp(x->trace->host, y->trace->host);
	if (!c && (!x->trace->tsdl.has_uuid || !x->has_instance || !y->has_instance))
		c = strcmp(x->trace->dir, y->trace->dir);
	if (!c && class_id(x) != class_id(y))
		c = class_id(x) < class_id(y) ? -1 : 1;
	if (!c && x->has_instance != y->has_instance)
		c = x->has_instance ? -1 : 1;
	if (!c && x->has_instance)
		return (x->instance > y->instance) - (x->instance < y->instance);
	return c ? c : strcmp(x->path, y->path);
}

static int compare_files(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;
	int c = compare_identity(x, y);

	if (!c && x->begin != y->begin)
		c = x->begin < y->begin ? -1 : 1;
	return c ? c : strcmp(x->path, y->path);
}

/* Appends n files to a stream. Takes the files. */
static int append_files(
	struct ky_trace_reader *r, struct ky_stream *s, struct ky_file *files, size_t n)
{
	struct ky_file *all = calloc(s->n_files + n, sizeof(*all));

	if (!all)
		return ky_reader_fail_memory(r);
	for (size_t i = 0; i < s->n_files + n; i++) {
		struct ky_file *from = i < s->n_files ? &s->files[i] : &files[i - s->n_files];

		ky_handle_deinit(&from->handle, from->files); /* it is in a list */
		all[i] = *from;
		ky_handle_init(&all[i].handle);
		from->path = NULL;
	}
	free(s->files);
	s->files = all;
	s->n_files += n;
	r->has_changed = true;
	return 0;
}

/* Adds a stream without files. NULL without memory. */
static struct ky_stream *add_stream(struct ky_trace_reader *r)
{
	struct ky_stream *s = calloc(1, sizeof(*s)), **at;

	at = s ? ky_reader_grow(&r->streams, &r->n_streams, sizeof(struct ky_stream *)) : NULL;
	if (!at) {
		free(s);
		ky_reader_fail_memory(r);
		return NULL;
	}
	*at = s;
	return s;
}

/* The order of streams whose records have equal times. */
static int compare_streams(const void *a, const void *b)
{
	const struct ky_file *x = (*(struct ky_stream *const *)a)->files;
	const struct ky_file *y = (*(struct ky_stream *const *)b)->files;
	int c = ky_trace_compare_uuids(&x->trace->tsdl, &y->trace->tsdl);

	if (!c && !x->trace->tsdl.has_uuid)
		c = strcmp(x->trace->name, y->trace->name);
	if (!c && class_id(x) != class_id(y))
		c = class_id(x) < class_id(y) ? -1 : 1;
	return c ? c : strcmp(x->path, y->path);
}

/* Gives ranks to the streams from first on. Those before keep theirs. */
static void rank_streams(struct ky_trace_reader *r, size_t first)
{
	if (first < r->n_streams)
		qsort(&r->streams[first], r->n_streams - first, sizeof(struct ky_stream *),
			compare_streams);
	for (size_t i = first; i < r->n_streams; i++)
		r->streams[i]->rank = (uint32_t)(i + 1);
}

static int compare_paths(const void *a, const void *b)
{
	const struct ky_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Numbers streams that have no number as babeltrace2 does: in each trace, by their paths. */
static void number_files(struct ky_trace_reader *r)
{
	qsort(r->files, r->n_files, sizeof(*r->files), compare_paths);
	for (size_t i = 0; i < r->n_files; i++) {
		struct ky_file *f = &r->files[i];

		if (!f->has_instance)
			f->instance = f->trace->n_numbered++;
	}
}

/* Returns one of the first n streams to which a file belongs, or NULL. */
static struct ky_stream *find_stream(
	const struct ky_trace_reader *r, size_t n, const struct ky_file *f)
{
	for (size_t i = 0; i < n; i++) {
		if (!compare_identity(&r->streams[i]->files[0], f))
			return r->streams[i];
	}
	return NULL;
}

/* Assigns the files that were found to streams. */
static int make_streams(struct ky_trace_reader *r)
{
	size_t n, n_before = r->n_streams;
	int e = 0;

	if (r->n_files)
		number_files(r);
	if (r->n_files)
		qsort(r->files, r->n_files, sizeof(*r->files), compare_files);
	for (size_t i = 0; i < r->n_files && !e; i += n) {
		struct ky_stream *s = find_stream(r, n_before, &r->files[i]);

		n = 1;
		while (i + n < r->n_files && !compare_identity(&r->files[i], &r->files[i + n]))
			n++;
		s = s ? s : add_stream(r);
		e = s ? append_files(r, s, &r->files[i], n) : -ENOMEM;
	}
	if (e)
		return e;
	rank_streams(r, n_before);
	ky_search_drop_files(r, 0);
	return 0;
}

/*
 * Sets how much of each file is read. While the traces grow, that is up to the end of the last
 * whole packet, which the index knows.
 */
static int measure_streams(struct ky_trace_reader *r)
{
	struct ky_packets packets = {0};
	int e = 0;

	for (size_t i = 0; i < r->n_streams && !e; i++) {
		struct ky_stream *s = r->streams[i];
		uint64_t n_before = s->n_bytes;

		if (!r->options.is_growing && !s->has_index)
			e = ky_chunks_skip_repeated(s, &packets);
		if (e)
			break;
		if (r->options.is_growing || s->has_index)
			e = ky_index_build(s, r->options.is_growing, &packets);
		s->n_bytes = 0;
		for (size_t k = 0; k < s->n_files; k++) {
			if (!r->options.is_growing)
				s->files[k].size = s->files[k].size_on_disk;
			s->n_bytes += s->files[k].size;
		}
		r->has_changed |= s->n_bytes != n_before;
	}
	ky_packets_deinit(&packets);
	return e ? ky_reader_fail_memory(r) : 0;
}

/* The number that a class had in the description before, or a new one. */
static size_t number_of_class(
	const struct ky_trace_reader *r, const struct ky_trace *t, const struct ky_event_class *e)
{
	const struct ky_stream_class *s = t->outdated ? ky_layout_stream(
								&t->outdated->layout, e->stream->id)
						      : NULL;
	const struct ky_event_class *before = s ? ky_stream_class_event(s, e->id) : NULL;

	return before ? before->index : r->n_classes;
}

/* Numbers the classes of events of a trace. */
static int number_classes_of(struct ky_trace_reader *r, struct ky_trace *t)
{
	struct ky_layout *l = &t->layout;
	struct ky_event_class **more;
	size_t n = r->n_classes + 1;

	for (size_t j = 0; j < l->n_streams; j++)
		n += l->streams[j].n_events;
	more = reallocarray(r->classes, n, sizeof(*r->classes));
	if (!more)
		return ky_reader_fail_memory(r);
	r->classes = more;
	for (size_t j = 0; j < l->n_streams; j++)
		for (size_t k = 0; k < l->streams[j].n_events; k++) {
			struct ky_event_class *e = &l->streams[j].events[k];

			e->index = number_of_class(r, t, e);
			r->n_classes += e->index == r->n_classes;
			r->classes[e->index] = e;
		}
	t->is_numbered = true;
	return 0;
}

static int number_classes(struct ky_trace_reader *r)
{
	int e = 0;

	for (size_t i = 0; i < r->n_traces && !e; i++) {
		if (!r->traces[i]->is_numbered)
			e = number_classes_of(r, r->traces[i]);
	}
	return e;
}

int ky_join(struct ky_trace_reader *r)
{
	int e = make_streams(r);

	if (!e)
		e = number_classes(r);
	if (!e)
		e = measure_streams(r);
	if (!e && ky_chunks_connect(r->streams, r->n_streams) < 0)
		e = ky_reader_fail_memory(r);
	return e;
}
