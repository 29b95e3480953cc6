/* SPDX-License-Identifier: MIT */
#include "reader/query.h"

#include "base/glob.h"

void ky_query_init(struct ky_query *q, struct ky_trace_reader *r)
{
	*q = (struct ky_query){.reader = r, .select = KY_SELECT_ALL};
}

void ky_query_deinit(struct ky_query *q)
{
	free(q->chosen);
	ky_expr_free(q->expr);
	*q = (struct ky_query){0};
}

static int copy_chosen(struct ky_query *to, const struct ky_query *q)
{
	size_t n = q->reader->n_classes + 1;

	if (!q->chosen)
		return 0;
	to->chosen = malloc(n);
	if (!to->chosen)
		return -ENOMEM;
	memcpy(to->chosen, q->chosen, n);
	return 0;
}

int ky_query_copy(struct ky_query *to, const struct ky_query *q)
{
	ky_query_init(to, q->reader);
	to->select = q->select;
	if (copy_chosen(to, q) < 0)
		return -ENOMEM;
	if (q->expr)
		to->expr = ky_expr_copy(q->expr);
	return 0;
}

/* --- classes --- */

static const char *name_of(const struct ky_query *q, size_t i)
{
	const char *name = q->reader->classes[i]->name;

	return name ? name : "";
}

/* One pattern, which excludes behind `!`. */
static int apply_pattern(struct ky_query *q, const char *pattern)
{
	bool excludes = *pattern == '!';

	pattern += excludes;
	if (!ky_glob_valid(pattern))
		return -EINVAL;
	for (size_t i = 0; i < q->reader->n_classes; i++) {
		if (ky_glob_match(pattern, name_of(q, i)))
			q->chosen[i] = !excludes;
	}
	return 0;
}

/* Patterns that include come first, whatever the order. */
static int apply_patterns(struct ky_query *q, const char *patterns, bool excluding)
{
	int r = 0;

	for (const char *p = patterns; !r && *p;) {
		size_t len = strcspn(p, ",");
		char *one = strndup(p, len);

		if (!one)
			return -ENOMEM;
		if ((*one == '!') == excluding || !len)
			r = apply_pattern(q, one);
		free(one);
		p += len + (p[len] == ',');
	}
	return r;
}

static bool only_excludes(const char *patterns)
{
	for (const char *p = patterns; *p;
		p += p[strcspn(p, ",")] == ',' ? strcspn(p, ",") + 1 : strlen(p)) {
		if (*p != '!')
			return false;
	}
	return true;
}

int ky_query_events(struct ky_query *q, const char *patterns)
{
	int r;

	if (!*patterns)
		return -EINVAL;
	free(q->chosen);
	q->chosen = calloc(q->reader->n_classes + 1, 1);
	if (!q->chosen)
		return -ENOMEM;
	if (only_excludes(patterns))
		memset(q->chosen, 1, q->reader->n_classes);
	r = apply_patterns(q, patterns, false);
	return r ? r : apply_patterns(q, patterns, true);
}

bool ky_query_has(const struct ky_query *q, size_t class_index)
{
	return !q->chosen || q->chosen[class_index];
}

int ky_query_filter(struct ky_query *q, const char *expression, struct ky_filter_error *error)
{
	struct ky_expr *e = NULL;
	int r = ky_expr_new(&e, expression, error);

	if (r < 0)
		return r;
	ky_expr_free(q->expr);
	q->expr = e;
	return 0;
}

/* --- slices --- */

/* Bytes that begin at a time. */
struct piece {
	int64_t ns;
	uint64_t bytes;
};

static int by_time(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->ns > y->ns) - (x->ns < y->ns);
}

static size_t count_places(const struct ky_trace_reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_streams; i++)
		n += r->streams[i]->n_places;
	return n;
}

/* The bytes from a place to the next one. */
static uint64_t bytes_from(const struct ky_stream *s, size_t i)
{
	const struct ky_place *p = &s->places[i];

	if (i + 1 < s->n_places && p[1].file == p->file)
		return p[1].offset - p->offset;
	return s->files[p->file].size - p->offset;
}

/* All that lies within the times; how many, and their bytes. */
static size_t list_pieces(const struct ky_query *q, struct piece *to, uint64_t *ret_bytes)
{
	const struct ky_trace_reader *r = q->reader;
	size_t n = 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < r->n_streams; i++) {
		const struct ky_stream *s = r->streams[i];

		for (size_t k = 0; k < s->n_places; k++) {
			struct piece p = {ky_place_ns(s, &s->places[k]), bytes_from(s, k)};

			if (p.ns > q->select.to_ns ||
				(k + 1 < s->n_places &&
					ky_place_ns(s, &s->places[k + 1]) < q->select.from_ns))
				continue;
			*ret_bytes += p.bytes;
			to[n++] = p;
		}
	}
	qsort(to, n, sizeof(*to), by_time);
	return n;
}

/*
 * Cuts where so many bytes of each slice were passed, at places that begin later than the last cut.
 */
static size_t cut(const struct ky_query *q, struct ky_select *slices, size_t n,
	const struct piece *pieces, size_t n_pieces, uint64_t bytes)
{
	uint64_t passed = 0;
	size_t k = 0;

	slices[0] = q->select;
	for (size_t i = 0; i < n_pieces && k + 1 < n; i++) {
		if (passed >= bytes / n * (k + 1) &&
			pieces[i].ns > (k ? slices[k].slice_begin_ns : pieces[0].ns)) {
			slices[k + 1] = slices[k];
			slices[k].has_slice_end = true;
			slices[k].slice_end_ns = pieces[i].ns;
			k++;
			slices[k].has_slice_begin = true;
			slices[k].slice_begin_ns = pieces[i].ns;
		}
		passed += pieces[i].bytes;
	}
	return k + 1;
}

int ky_query_slices(
	const struct ky_query *q, size_t n, struct ky_select **ret_slices, size_t *ret_n)
{
	struct piece *pieces;
	struct ky_select *slices;
	uint64_t bytes;
	size_t n_pieces;

	n = KY_MAX(n, (size_t)1);
	/* A slice of slices has its records from it alone. */
	if (q->select.has_slice_begin || q->select.has_slice_end)
		n = 1;
	if (ky_trace_reader_index(q->reader) < 0)
		return -ENOMEM;
	pieces = calloc(count_places(q->reader) + 1, sizeof(*pieces));
	slices = calloc(n, sizeof(*slices));
	if (!pieces || !slices) {
		free(pieces);
		free(slices);
		return -ENOMEM;
	}
	n_pieces = list_pieces(q, pieces, &bytes);
	*ret_n = cut(q, slices, n, pieces, n_pieces, bytes);
	*ret_slices = slices;
	free(pieces);
	return 0;
}

/* --- reading --- */

static bool pass(void *arg, const struct ky_item *item)
{
	const struct ky_reading *r = arg;

	return ky_expr_pass(r->expr, r->fields[item->event->index], item);
}

/* The class's fields for the expression. 0, -ENOENT if it lacks one, or -ENOMEM. */
static int bind_class(struct ky_reading *r, const struct ky_event_class *e)
{
	size_t n = ky_expr_n_fields(r->expr);
	struct ky_field_ref *fields = calloc(n, sizeof(*fields));

	if (!fields)
		return -ENOMEM;
	r->fields[e->index] = fields;
	return ky_expr_bind(r->expr, e, fields) ? 0 : -ENOENT;
}

static bool has_limits(const struct ky_select *s)
{
	return s->from_ns > INT64_MIN || s->has_slice_begin || s->has_slice_end;
}

static int choose_class(struct ky_reading *r, const struct ky_query *q, size_t i, uint8_t want)
{
	int e;

	if (!ky_query_has(q, i) || !want)
		return 0;
	r->wanted[i] = want;
	if (!r->expr)
		return 0;
	r->wanted[i] |= KY_WANT_FILTER | KY_WANT_VALUES;
	e = bind_class(r, q->reader->classes[i]);
	if (e == -ENOENT)
		r->wanted[i] = 0;
	return e == -ENOMEM ? e : 0;
}

int ky_reading_init(struct ky_reading *r, const struct ky_query *q, const uint8_t *want,
	const struct ky_select *select, const struct ky_trace_reader_options *options)
{
	struct ky_select s = select ? *select : q->select;
	size_t n = q->reader->n_classes;
	int e = 0;

	*r = (struct ky_reading){.expr = q->expr, .n_classes = n};
	r->wanted = calloc(n + 1, 1);
	r->fields = calloc(n + 1, sizeof(*r->fields));
	if (!r->wanted || !r->fields)
		return -ENOMEM;
	for (size_t i = 0; i < n && !e; i++)
		e = choose_class(r, q, i, want ? want[i] : KY_WANT_EVENT | KY_WANT_VALUES);
	if (!e && has_limits(&s))
		e = ky_trace_reader_index(q->reader);
	s.wanted = r->wanted;
	if (!e)
		e = ky_cursor_open(&r->cursor, q->reader, &s, options);
	if (!e)
		ky_cursor_set_filter(r->cursor, pass, r);
	return e;
}

void ky_reading_deinit(struct ky_reading *r)
{
	ky_cursor_close(r->cursor);
	for (size_t i = 0; r->fields && i < r->n_classes; i++)
		free(r->fields[i]);
	free(r->fields);
	free(r->wanted);
	*r = (struct ky_reading){0};
}
