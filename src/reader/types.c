/* SPDX-License-Identifier: MIT */
#include "reader/types.h"

#include <stdarg.h>

#define MANY_LABELS  8	/* more of them are looked up by segments */
#define MAX_N_LABELS 32 /* of one value: more are not shown */

/* --- labels --- */

/*
 * Finds the place of each range if ranges are sorted by the first range of their label, which is
 * the order in which babeltrace2 shows the labels of a value. Returns false without memory.
 */
static bool sort_labels(struct ky_tsdl *tsdl, const struct ky_type *t, uint32_t *next,
	uint32_t *group, const char **labels, struct ky_range *ranges)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t *first = ky_names_at(&tsdl->names, t, t->labels[i]);

		if (!first)
			return false;
		*first = KY_MIN(*first, i);
		group[i] = *first;
		next[*first + 1]++;
	}
	for (uint32_t i = 0; i < t->n; i++)
		next[i + 1] += next[i];
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t at = next[group[i]]++;

		labels[at] = t->labels[i];
		ranges[at] = t->ranges[i];
	}
	return true;
}

bool ky_type_index_labels(struct ky_tsdl *tsdl, struct ky_type *t)
{
	uint32_t *next = calloc(t->n + 1, sizeof(*next));
	uint32_t *group = calloc(t->n + 1, sizeof(*group));
	const char **labels = ky_arena_alloc(&tsdl->arena, t->n * sizeof(*labels));
	struct ky_range *ranges = ky_arena_alloc(&tsdl->arena, t->n * sizeof(*ranges));
	bool ok = next && group && labels && ranges &&
		  sort_labels(tsdl, t, next, group, labels, ranges);

	free(next);
	free(group);
	if (!ok)
		return false;
	t->labels = labels;
	t->ranges = ranges;
	return t->n <= MANY_LABELS || !ky_segments_build(&t->segments, &tsdl->arena, ranges, t->n,
					      t->is_signed, MAX_N_LABELS);
}

/* --- blocks --- */

static int compare_streams(const void *a, const void *b)
{
	const struct ky_tsdl_stream *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int compare_events(const void *a, const void *b)
{
	const struct ky_tsdl_event *x = a, *y = b;

	if (x->stream_id != y->stream_id)
		return x->stream_id < y->stream_id ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static bool KY_PRINTF(2, 3) refuse_types(struct ky_tsdl_error *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return false;
}

bool ky_tsdl_finish(struct ky_tsdl *t, struct ky_tsdl_error *error)
{
	if (t->n_streams)
		qsort(t->streams, t->n_streams, sizeof(*t->streams), compare_streams);
	if (t->n_events)
		qsort(t->events, t->n_events, sizeof(*t->events), compare_events);
	for (size_t i = 1; i < t->n_streams; i++) {
		if (t->streams[i].id == t->streams[i - 1].id)
			return refuse_types(error, "two streams have the id %llu",
				(unsigned long long)t->streams[i].id);
	}
	for (size_t i = 0; i < t->n_events; i++) {
		const struct ky_tsdl_event *e = &t->events[i];
		struct ky_tsdl_stream key = {.id = e->stream_id};

		if (i && !compare_events(e, e - 1))
			return refuse_types(
				error, "two events have the id %llu", (unsigned long long)e->id);
		if (!t->n_streams ||
			!bsearch(&key, t->streams, t->n_streams, sizeof(key), compare_streams))
			return refuse_types(error,
				"an event belongs to the stream %llu, which is not described",
				(unsigned long long)e->stream_id);
	}
	return true;
}

void ky_tsdl_deinit(struct ky_tsdl *t)
{
	ky_names_deinit(&t->names);
	ky_arena_deinit(&t->arena);
}

const struct ky_env *ky_tsdl_env(const struct ky_tsdl *t, const char *name)
{
	for (size_t i = t->n_env; i-- > 0;) {
		if (!strcmp(t->env[i].name, name))
			return &t->env[i];
	}
	return NULL;
}
